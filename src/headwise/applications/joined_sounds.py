"""Strings of recordings joined to one sound: synthetic, but of real recordings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from headwise.applications.data_sounds import Recording


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """How sounds are changed in training.

    Args:
        speed: 0.1: from 0.9 to 1.1 times as fast, each recording by itself (Ko et al. 2015).
        gain: decibels louder or softer, each recording by itself.
        bands: as many neighbouring bands at most are blanked out, twice (Park et al. 2019, *SpecAugment*).
        frames: likewise.
    """

    speed: float = 0.1
    gain: float = 6.0
    bands: int = 8
    frames: int = 12

    def __post_init__(self) -> None:
        if not 0 <= self.speed < 1:
            raise ValueError(f"speed is {self.speed}: it must be at least 0 and less than 1")
        for name in ("gain", "bands", "frames"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be 0 (for none) or more")


def strings_of(count: int, longest: int, chance: random.Random) -> list[list[int]]:
    """All of `count` recordings, each once, in strings of 1 to `longest`: about as many recordings in strings
    of each length, so that the short ones, which have the fewest, aren't rare."""
    order = list(range(count))
    chance.shuffle(order)
    strings = []
    lengths = range(1, longest + 1)
    while order:
        length = chance.choices(lengths, [1 / one for one in lengths])[0]
        strings.append(order[:length])
        order = order[length:]
    return strings


def join(
    recordings: Sequence[Recording],
    rate: int,
    chance: random.Random,
    *,
    gap: float = 0.1,
    disturbance: Disturbance | None = None,
) -> Tensor:
    """One sound, with silences of up to `gap` seconds between: float32 [time]."""
    parts = []
    for number, one in enumerate(recordings):
        samples = one.samples
        if disturbance is not None:
            samples = _at_speed(samples, 1 + chance.uniform(-1, 1) * disturbance.speed)
            samples = samples * 10 ** (chance.uniform(-1, 1) * disturbance.gain / 20)
        if number:
            parts.append(torch.zeros(round(chance.uniform(0, gap) * rate)))
        parts.append(samples)
    return torch.cat(parts)


def _at_speed(samples: Tensor, speed: float) -> Tensor:
    """So many times as fast (and as high), by straight lines between samples."""
    length = max(1, round(len(samples) / speed))
    if length == len(samples):
        return samples
    return F.interpolate(samples[None, None], size=length, mode="linear", align_corners=False)[0, 0]


def blank_out(features: Tensor, length: int, disturbance: Disturbance, chance: random.Random) -> None:
    """SpecAugment on one sound, in place: [frames, bands], of which `length` frames are real.

    0 is the mean of normalised features. No more than a fifth of the frames are blanked out at once.
    """
    for _ in range(2):
        bands = chance.randint(0, min(disturbance.bands, features.shape[1]))
        first = chance.randint(0, features.shape[1] - bands)
        features[:, first : first + bands] = 0
        frames = chance.randint(0, min(disturbance.frames, length // 5))
        start = chance.randint(0, length - frames)
        features[start : start + frames] = 0
