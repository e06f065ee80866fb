"""Numbers that a caller gives, and what is said of the wrong ones."""

from __future__ import annotations

import math
import numbers

import torch
from torch import Tensor


def check_number(name: str, value: object, fix: str) -> None:
    """Raise TypeError unless value is a plain number."""
    if type(value) is float or type(value) is int:
        return
    if isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a tensor, and a number is expected (a tensor's gradient would be lost): {fix}; "
            f"float({name}) makes a number of it"
        )
    real = isinstance(value, int | float | torch.SymInt | torch.SymFloat | numbers.Real)
    if isinstance(value, bool) or not real:
        raise TypeError(f"{name}={value!r} is {called(value)}, and a number is expected: {fix}")


def check_whole(name: str, value: object) -> None:
    """Raise TypeError unless value is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt):
        raise TypeError(f"{name}={value!r} is {called(value)}: expected a whole number")


def check_scale(scale: float | None) -> None:
    """Raise unless scale is a finite number, or None."""
    if scale is None:
        return
    check_number("scale", scale, "leave it out for 1 / sqrt(d_k)")
    if not math.isfinite(scale):
        raise ValueError(f"scale={scale}: must be a finite number; leave it out for 1 / sqrt(d_k)")


def check_softcap(softcap: float | None) -> None:
    """Raise unless softcap is a positive number, or None."""
    if softcap is None:
        return
    check_number("softcap", softcap, "scores stay within it, such as 50.0; None for no cap")
    if not (softcap > 0 and math.isfinite(softcap)):
        raise ValueError(
            f"softcap={softcap}: must be a positive number (scores stay within it); None for no cap"
        )


def check_share(name: str, share: float) -> None:
    """Raise unless share, of what is dropped, is a number in [0, 1)."""
    check_number(name, share, f"the share that is dropped, 0 <= {name} < 1")
    if not 0.0 <= share < 1.0:
        raise ValueError(f"{name}={share}: is the share that is dropped, 0 <= {name} < 1; 10 per cent is 0.1")


def called(value: object) -> str:
    """ "a str", "the class Causal"."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
