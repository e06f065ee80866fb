"""Slower rotary frequencies, so that a model reaches longer texts than it was trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LinearScaling:
    """Every frequency divided by `factor`: position interpolation (arxiv.org/abs/2306.15595)."""

    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies / self.factor


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3.1's: slow waves are divided by `factor`, fast ones kept, those between blended.

    A wave is slow if it turns fewer than `low` times over `original_length` positions, fast if more
    than `high` times. Between, the share kept grows evenly with the number of turns.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_length: int = 8192

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        if not 0 < self.low < self.high:
            raise ValueError(f"low={self.low} and high={self.high}: expected 0 < low < high.")

    def __call__(self, frequencies: Tensor) -> Tensor:
        turns = self.original_length * frequencies / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return torch.lerp(frequencies / self.factor, frequencies, kept)


def _check_factor(factor: float) -> None:
    if not factor > 0:
        raise ValueError(f"factor={factor}: must be above 0 (8 reaches eight times as far).")
