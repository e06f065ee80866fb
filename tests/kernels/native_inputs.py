"""Calls of one size with any of their tensors replaced, and a watch on the compiled module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.two_tensor import TwoTensor

import headwise as hw
from headwise.kernels import native_call
from headwise.kernels.native_build import native
from headwise.masks import Mask

SIZES = {"q": (2, 4, 64, 32), "k": (2, 4, 64, 32), "v": (2, 4, 64, 32)}  # large enough for `auto` to take it


def drawn(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in SIZES.items()}


def extras() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(9)
    return {
        "bias": torch.randn(64, 64, generator=generator),
        "sinks": torch.randn(4, generator=generator),
        "q_positions": torch.arange(64),
        "lengths": torch.tensor([40, 64]),
        "ids": torch.arange(64) // 20,
        "allow": torch.rand(64, 64, generator=generator) > 0.4,
    }


def call(given: dict[str, Tensor], **options: Any) -> Tensor:
    """`attention` of q, k, v and whatever of `extras` is given."""
    given = dict(given)
    masks: list[Mask] = []
    for name, kind in (("lengths", hw.KeyLengths), ("ids", hw.Documents), ("allow", hw.Allow)):
        if name in given:
            masks.append(kind(given.pop(name)))
    if "q_positions" in given:
        masks.append(hw.Causal())
    mask = None
    for one in masks:
        mask = one if mask is None else mask & one
    return hw.attention(**given, mask=mask, **options)  # type: ignore[arg-type, no-any-return]


def watch_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which functions of the compiled module are called from now on."""
    found: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            if name in ("forward", "backward", "measure"):
                found.append(name)
            return getattr(native, name)

    monkeypatch.setattr(native_call, "native", Watched())
    return found


def plain(x: Any) -> Tensor:
    return x.a if isinstance(x, TwoTensor) else x
