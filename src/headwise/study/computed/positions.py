"""The positional encoding, number by number."""

from __future__ import annotations

import math

import torch

from headwise.positions import sinusoidal
from headwise.positions.angles import frequencies


def frequency_pairs(d_model: int) -> int:
    """Sine and cosine pairs of a positional encoding."""
    return (d_model + 1) // 2


def wavelength(pair: int, d_model: int, base: float = 10000.0) -> float:
    """Positions after which a pair of sine and cosine repeats: 2 pi base^(2 pair / d_model). The pair after
    the last gives the limit."""
    found = frequencies(pair + 1, d_model, base, device=torch.device("cpu"))[pair]
    return 2 * math.pi / float(found)


def position_component(position: int, column: int, d_model: int, base: float = 10000.0) -> float:
    """One number of the positional encoding."""
    places = torch.tensor([position])
    encoded = sinusoidal(1, d_model, base=base, positions=places, dtype=torch.float64)
    return float(encoded[0, column])


def position_similarity(distance: int, d_model: int, base: float = 10000.0) -> float:
    """The dot product of the encodings of two positions so far apart; it doesn't matter which two."""
    both = sinusoidal(distance + 1, d_model, base=base, dtype=torch.float64)
    return float(both[0] @ both[distance])
