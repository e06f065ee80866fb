"""How long outputs may become, and how exactly they are scored."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.models.decoding.steppers import Stepper


def limits_of(stepper: Stepper, max_extra: int, max_length: int | None) -> Tensor:
    """int64 [n], the most tokens of each output.

    Raises:
        ValueError: a max_length below 1.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length={max_length}: the most tokens of an output, 1 or more; None for no cap")
    limits = stepper.limits(max_extra).clamp(min=0)
    return limits if max_length is None else limits.clamp(max=max_length)


def precise(device: torch.device) -> torch.dtype:
    """The type of sums of log-probabilities: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64
