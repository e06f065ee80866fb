"""Dropout with the same law as torch's, drawn four times as fast on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_LANES = 1 << 16  # values of 16 random bits


def dropped(dropout: nn.Module, x: Tensor) -> Tensor:
    """What `dropout(x)` is, of the same law.

    Where nothing would be dropped, x itself: in decoding a call of the module shows. On a CPU, torch draws a
    number for each entry, which took up to 17 % of a training step; here 64 random bits of its default
    generator decide over four entries, 16 for each. The rate is rounded to a multiple of 2^-16, and what is
    kept is divided by what the rounded one keeps, so that the mean stays x.
    """
    hooked = dropout._forward_hooks or dropout._forward_pre_hooks
    rate = dropout.p if type(dropout) is nn.Dropout and not hooked else None
    if rate is not None and not (dropout.training and rate):
        return x
    if rate is not None and not dropout.inplace and _has_numbers(x):
        steps = round(rate * _LANES)
        if 0 < steps < _LANES:
            scale = _LANES / (_LANES - steps)
            kept: Tensor = _Dropped.apply(x, _keep(x, steps), scale)  # type: ignore[no-untyped-call]
            return kept
    out: Tensor = dropout(x)
    return out


def _keep(x: Tensor, steps: int) -> Tensor:
    """Bool of x's shape, False with probability steps / 2^16."""
    count = x.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    return (bits.view(torch.int16)[:count] >= steps - _LANES // 2).view(x.shape)


def _has_numbers(x: Tensor) -> bool:
    """Whether x holds numbers on a CPU, and nobody traces or transforms what is done with it."""
    return (
        type(x) is Tensor
        and x.device.type == "cpu"
        and x.is_floating_point()
        and not torch.compiler.is_compiling()
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch.autograd.forward_ad._current_level < 0
    )


class _Dropped(torch.autograd.Function):
    """x * keep * scale. Keeps one byte for each entry, not the numbers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return keep.to(x.dtype).mul_(scale).mul_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        factor = keep.to(grad.dtype).mul_(ctx.scale)
        return (grad * factor if torch.is_grad_enabled() else factor.mul_(grad)), None, None
