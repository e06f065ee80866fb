"""A trained Vision Transformer: what an image shows, and how often it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.applications.base import Evaluation, data_of
from headwise.applications.data_images import SPLITS, Split, load_images
from headwise.applications.errors import DataError
from headwise.applications.images import Picture, read_image
from headwise.applications.intervals import bootstrap_interval
from headwise.applications.options import take
from headwise.models.vision import VisionConfig, VisionTransformer
from headwise.training.runs import LoadedRun


def normalized(pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Mean 0 and deviation 1 over the training images: [batch, channels, height, width]."""
    return (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def split_named(name: str) -> Split:
    """A split by its name; "val" is short for "valid".

    Raises:
        ValueError: there is no such split.
    """
    for split in SPLITS:
        if split == name or (split == "valid" and name == "val"):
            return split
    raise ValueError(f"there is no split {name!r}: choose {', '.join(SPLITS)}")


@dataclass(frozen=True)
class Guess:
    """What an image was taken for.

    Attributes:
        probabilities: by class, the likeliest first
        notes: what was changed to read it
    """

    probabilities: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        return next(iter(self.probabilities))


class Classifier:
    """A trained model and what its images must look like.

    Attributes:
        classes: their names
    """

    def __init__(self, loaded: LoadedRun) -> None:
        self.folder, self.config, self.step = loaded.folder, loaded.config, loaded.step
        with loaded.reading() as config:
            if config["application"] != "vision":
                raise ValueError(f"it is of application {config['application']!r}, not 'vision'")
            self.classes: tuple[str, ...] = tuple(config["classes"])
            self.mean: list[float] = config["mean"]
            self.std: list[float] = config["std"]
            model = VisionTransformer(VisionConfig.from_dict(config["model"]))
        loaded.load_into(model)
        self.model = model.eval()

    @torch.no_grad()
    def logits(self, pixels: Tensor) -> Tensor:
        """Of pixels from 0 to 1, [batch, channels, height, width]."""
        found: Tensor = self.model(normalized(pixels, self.mean, self.std))
        return found

    def read(self, path: Path | str, *, invert: bool = False) -> Picture:
        """An image as the model reads it.

        Args:
            invert: dark on light becomes light on dark, as MNIST and the digits are.
        """
        found = read_image(path, size=self.model.config.image_size, channels=self.model.config.channels)
        if not invert:
            return found
        return Picture(255 - found.pixels, found.grey, (*found.notes, "light and dark were exchanged"))

    def classify(self, path: Path | str, *, invert: bool = False) -> Guess:
        """What an image file shows.

        Raises:
            DataError: it can't be read.
        """
        picture = self.read(path, invert=invert)
        shares = self.logits(picture.pixels[None].float() / 255)[0].softmax(-1)
        order = shares.argsort(descending=True).tolist()
        return Guess({self.classes[number]: float(shares[number]) for number in order}, picture.notes)

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """Accuracy, with a 95 % interval of 1,000 bootstrap samples, beside always saying the class that is
        the commonest in training.

        Options: limit (all images).
        """
        limit = take(options, limit=None)["limit"]
        path = one_path(data_of(self.config, data))
        sets = load_images(path, size=self.model.config.image_size, channels=self.model.config.channels)
        images = sets[split_named(split)]
        if images.classes != self.classes:
            raise DataError(
                f"the images have the classes {', '.join(images.classes)}, and the run "
                f"{', '.join(self.classes)}: give images of the same"
            )
        if limit is not None:
            images = images.rows(range(min(limit, len(images))))
        guesses = torch.cat([self.logits(part.float() / 255).argmax(-1) for part in images.images.split(256)])
        right = (guesses == images.labels).tolist()
        low, high = bootstrap_interval(right, lambda rows: sum(rows) / len(rows))
        commonest = int(torch.bincount(sets["train"].labels).argmax())
        figures = {"accuracy": sum(right) / len(right), "accuracy_low": low, "accuracy_high": high}
        baseline = {"accuracy": float((images.labels == commonest).double().mean())}
        outputs = [
            {"input": f"image {number}", "output": self.classes[guess], "reference": self.classes[label]}
            for number, (guess, label) in enumerate(
                zip(guesses.tolist(), images.labels.tolist(), strict=True)
            )
        ]
        mistakes = confusions(guesses.tolist(), images.labels.tolist(), self.classes)
        notes = [f"{one} taken for {other}: {count}" for one, other, count in mistakes[:10]]
        return Evaluation(split, len(right), figures, {"commonest class": baseline}, outputs, notes)


def one_path(data: Sequence[Path]) -> Path:
    """
    Raises:
        DataError: none, or several.
    """
    if len(data) != 1:
        raise DataError(f"{len(data)} places for data, where one is expected: give a single --data")
    return data[0]


def confusions(
    guesses: Sequence[int], labels: Sequence[int], classes: Sequence[str]
) -> list[tuple[str, str, int]]:
    """(class, what it was taken for, how often), the most frequent first."""
    counts: dict[tuple[int, int], int] = {}
    for guess, label in zip(guesses, labels, strict=True):
        if guess != label:
            counts[label, guess] = counts.get((label, guess), 0) + 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(classes[label], classes[guess], count) for (label, guess), count in ranked]
