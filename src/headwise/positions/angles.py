"""Frequencies of sine waves over positions, shared by the sinusoidal and rotary encodings."""

from __future__ import annotations

import torch
from torch import Tensor


def precise(device: torch.device) -> torch.dtype:
    """The widest float of a device: float64, but float32 on Apple's GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def frequencies(pairs: int, width: int, base: float, *, device: torch.device) -> Tensor:
    """Radians per step of each pair: base^(-2i / width) for i = 0 .. pairs - 1.

    float64 [pairs]. A float32 angle at position 65,535 is wrong by up to 0.004 radians, a bfloat16
    one by whole turns; in float64 the error stays below 1e-11.
    """
    exponents = torch.arange(pairs, device=device, dtype=precise(device)) * (-2.0 / width)
    return torch.pow(base, exponents)
