"""One image file as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.applications.errors import DataError
from headwise.training.extras import need

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")


@dataclass(frozen=True)
class Picture:
    """An image that was read.

    Attributes:
        pixels: uint8 [channels, height, width]
        grey: whether its channels, where there were three, were equal
        notes: what was changed on the way: size, colour, transparency
    """

    pixels: Tensor
    grey: bool
    notes: tuple[str, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[1], self.pixels.shape[2]


def read_image(path: Path | str, *, size: tuple[int, int] | None = None, channels: int = 3) -> Picture:
    """Read an image of any common form: grey, 16-bit, palette, RGB, with transparency (white shines through),
    turned as its camera says; the first picture of an animation.

    Args:
        size: height and width to bring it to (antialiased; its shape isn't kept). Default: its own.
        channels: 1 for grey, 3 for colour.

    Raises:
        DataError: no such file, no image, a damaged or cut-off one, one of no pixels or far too many.
    """
    pil = need("PIL.Image", "reading images")
    ops = need("PIL.ImageOps", "reading images")
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder: give an image file")
    notes = []
    try:
        with pil.open(path) as file:
            file.load()
            if getattr(file, "n_frames", 1) > 1:
                notes.append(f"the first of {file.n_frames} pictures was taken")
            image = ops.exif_transpose(file)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path") from None
    except (pil.DecompressionBombError, pil.DecompressionBombWarning):
        raise DataError(f"{path} has too many pixels to be a picture: make it smaller first") from None
    except pil.UnidentifiedImageError:
        raise DataError(f"{path} is no image, or a damaged one: give one of {', '.join(SUFFIXES)}") from None
    except Exception as error:  # each format's reader fails in ways of its own on damaged files
        raise DataError(f"{path} is damaged or cut off: {error}") from None
    image = _eight_bits(image)
    if "A" in image.getbands() or "transparency" in image.info:
        rgba = image.convert("RGBA")
        if rgba.getchannel("A").getextrema()[0] < 255:
            notes.append("transparent parts became white")
        white = pil.new("RGBA", rgba.size, (255, 255, 255, 255))
        image = pil.alpha_composite(white, rgba)
    image = image.convert("RGB")
    if not image.width or not image.height:
        raise DataError(f"{path} has no pixels")
    if size is not None and (image.height, image.width) != size:
        notes.append(f"resized from {image.height} x {image.width} to {size[0]} x {size[1]} pixels")
        image = image.resize((size[1], size[0]), pil.Resampling.BILINEAR)
    colour = _tensor(image)
    grey = bool((colour == colour[:1]).all())
    if channels == 1:
        if not grey:
            notes.append("colours became shades of grey")
        return Picture(_tensor(image.convert("L")), grey, tuple(notes))
    return Picture(colour, grey, tuple(notes))


def _eight_bits(image: Any) -> Any:
    """16-bit grey as 8-bit: the reader's own conversion would make everything over 255 white."""
    if image.mode.startswith(("I", "F")):
        high = image.getextrema()[1]
        top = 255 if high <= 255 else 65535
        return image.convert("F").point(lambda value: value * (255 / top)).convert("L")
    return image


def _tensor(image: Any) -> Tensor:
    """uint8 [channels, height, width]."""
    channels = len(image.getbands())
    flat = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return flat.reshape(image.height, image.width, channels).permute(2, 0, 1).contiguous()
