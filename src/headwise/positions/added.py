"""Any tensor of numbers, added to the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from headwise.positions.base import Bias, Places, sum_to


@dataclass(frozen=True, eq=False)
class AddedScores(Bias):
    """bias[..., h, i, j] = tensor[..., h, i, j].

    -inf means the same as masked: weight 0, and a query with nothing else gives 0. `finfo.min` is
    just a large number: a row of nothing but finfo.min attends evenly to all of it.

    The tensor may be learned. Dimensions of size 1 stay so; nothing is ever expanded.

    Args:
        tensor: float, broadcastable to [*batch, heads, q_len, k_len].
        check_values: refuse numbers that look like a 0/1 mask. It reads the tensor once (on a GPU, it
            waits for it); it is skipped for tensors that need a gradient and while compiling.

    Raises:
        TypeError: a bool or integer tensor, which is a mask.
        ValueError: a float tensor of only 0 and 1 (with a 1), which was meant as a mask
            (pytorch#170400, pytorch#120668); or a shape that doesn't broadcast.
    """

    tensor: Tensor
    check_values: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.tensor, Tensor):
            raise TypeError(f"bias is a {type(self.tensor).__name__}: expected a float tensor or a Bias.")
        if not self.tensor.is_floating_point():
            shape = tuple(self.tensor.shape)
            fix = "mask=Allow(tensor)" if self.tensor.dtype == torch.bool else "mask=Allow(tensor.bool())"
            raise TypeError(
                f"bias is {self.tensor.dtype} {shape}: a bias is numbers added to the scores, so it must be "
                f"float. If it says who may attend to whom, pass {fix} (True means may attend)."
            )
        if self.check_values and not self.tensor.requires_grad and _looks_like_mask(self.tensor):
            raise ValueError(
                f"bias is {self.tensor.dtype} {tuple(self.tensor.shape)} and holds only 0 and 1: added to "
                f"the scores it would mask nothing. If 1 means may attend, pass mask=Allow(tensor == 1); "
                f"if 1 means hidden, mask=Allow(tensor == 0); if you do want to add these numbers, "
                f"AddedScores(tensor, check_values=False)."
            )

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def with_tensors(self, *tensors: Tensor) -> AddedScores:
        (tensor,) = tensors
        return AddedScores(tensor, check_values=False)

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        raise TypeError("AddedScores speaks of rows and columns, not of positions: ask for block().")

    def block(self, places: Places, rows: Any, cols: Any) -> Tensor:
        part = self.tensor
        if part.ndim >= 2 and part.shape[-2] != 1:
            part = part[..., rows, :]
        if part.ndim >= 1 and part.shape[-1] != 1:
            part = part[..., cols]
        return part

    def select(self, batch: tuple[int, ...], index: slice) -> AddedScores:
        lead, rest = self.tensor.shape[:-3], self.tensor.shape[-3:]
        if not lead:
            return self
        if all(size == 1 for size in lead):
            return self.with_tensors(self.tensor.reshape(rest))
        full = self.tensor.expand(*batch, *rest).reshape(math.prod(batch), *rest)
        return self.with_tensors(full[index])

    def backward(self, places: Places, rows: Any, cols: Any, grad: Tensor, into: tuple[Tensor, ...]) -> None:
        # Straight into the rectangle: the general way would make a gradient of the whole tensor per block.
        (target,) = into
        grad = sum_to(grad, self.block(places, rows, cols)).to(target.dtype)
        if target.ndim >= 2 and target.shape[-2] != 1:
            target = target[..., rows, :]
        if target.ndim == 0 or target.shape[-1] == 1 or isinstance(cols, slice):
            target = target if target.ndim == 0 or target.shape[-1] == 1 else target[..., cols]
            target += grad
        else:
            target.index_add_(-1, cols, grad)

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        full = (*batch, heads, q_len, k_len)
        shape = tuple(self.tensor.shape)
        fits = len(shape) <= len(full) and all(
            have in (1, want) for have, want in zip(reversed(shape), reversed(full), strict=False)
        )
        if not fits:
            raise ValueError(
                f"bias.shape={shape} doesn't broadcast to [*batch, heads, q_len, k_len] = {full}: every "
                f"dimension, counted from the last, must be 1 or equal. A bias per sequence needs "
                f"[batch, 1, q_len, k_len]."
            )


def _looks_like_mask(tensor: Tensor) -> bool:
    if torch.compiler.is_compiling() or tensor.numel() == 0 or tensor.device.type == "meta":
        return False
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # under vmap and grad, numbers can't be read
        return False
    if isinstance(tensor, FakeTensor) or torch._C._len_torch_dispatch_stack() or torch._C._is_tracing():
        return False  # they have none, or who records operations would record this look
    first = tensor[(0,) * (tensor.ndim - 1)]  # one row nearly always tells, and costs nothing
    if not bool(((first == 0) | (first == 1)).all().item()):
        return False
    ones = tensor == 1
    # Only zeros is a bias that does nothing yet (a learned one at its start), not a mask of everything.
    return bool((ones.any() & ((tensor == 0) | ones).all()).item())
