"""Images moved, turned, sheared and scaled a little, so that a model learns what doesn't matter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How far an image may be changed, either way.

    Args:
        shift: share of its height and width.
        degrees: of rotation.
        shear: tangent of the angle.
        zoom: 0.1: from 0.9 to 1.1 times the size, each side by itself.
    """

    shift: float = 0.1
    degrees: float = 10.0
    shear: float = 0.1
    zoom: float = 0.1

    def __post_init__(self) -> None:
        for name in ("shift", "degrees", "shear", "zoom"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}: it must be 0 (for none) or more")
        if self.zoom >= 1:
            raise ValueError(f"zoom is {self.zoom}: it must be less than 1, or images could vanish")

    def draw(self, count: int, seed: int) -> Tensor:
        """Affine maps from places in the new image to places in the old one, [count, 2, 3], in units where
        an image reaches from -1 to 1."""
        generator = torch.Generator().manual_seed(seed)
        x, y, angle, shear, wide, high = torch.rand(6, count, generator=generator) * 2 - 1
        angle = angle * math.radians(self.degrees)
        wide, high = 1 + wide * self.zoom, 1 + high * self.zoom
        cos, sin, slope = angle.cos(), angle.sin(), shear * self.shear
        across = torch.stack((cos * wide, (slope * cos - sin) * high, x * 2 * self.shift), -1)
        down = torch.stack((sin * wide, (slope * sin + cos) * high, y * 2 * self.shift), -1)
        return torch.stack((across, down), 1)


def augment(images: Tensor, maps: Tensor) -> Tensor:
    """Move images by the maps of `Augmentation.draw`: [batch, channels, height, width], [batch, 2, 3].

    What comes in from outside repeats the border, which for most images is their background.
    """
    grid = F.affine_grid(maps.to(images.dtype), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
