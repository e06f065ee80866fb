"""Biases: numbers added to scores. A bias is never a mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Places(Protocol):
    """Where rows and columns stand: positions broadcastable to [*batch, heads, rows, cols]."""

    @property
    def heads(self) -> int: ...
    @property
    def q_len(self) -> int: ...
    @property
    def k_len(self) -> int: ...
    def q(self, rows: Any) -> Tensor: ...
    def k(self, cols: Any) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Bias:
    """Base of all biases. A subclass gives `scores`; kernels ask for one block at a time, so that
    no bias but a dense tensor ever takes q_len x k_len memory."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that gradients may flow to."""
        return ()

    def with_tensors(self, *tensors: Tensor) -> Bias:
        """The same bias over other tensors (kernels use it to differentiate block by block)."""
        return self

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        """What is added to the score of the query at q_pos and the key at k_pos.

        Shapes: [..., q, 1] and [..., 1, k] -> broadcastable to [*batch, heads, q, k]. Differentiable
        in `tensors()`.
        """
        raise NotImplementedError

    def block(self, places: Places, rows: Any, cols: Any) -> Tensor:
        """The bias of the rectangle rows x cols (each a slice or an int64 tensor of indices)."""
        return self.scores(places.q(rows), places.k(cols))

    def select(self, batch: tuple[int, ...], index: slice) -> Bias:
        """This bias for some batch entries: all batch dimensions become one, of which `index` is kept.
        A bias whose tensors have no batch dimensions is its own selection."""
        return self

    def backward(self, places: Places, rows: Any, cols: Any, grad: Tensor, into: tuple[Tensor, ...]) -> None:
        """Add to `into` (one tensor per entry of `tensors()`) what the gradient of one block,
        [B, heads, rows, cols], sends to them."""
        leaves = tuple(t.detach().requires_grad_() for t in self.tensors())
        if not leaves:
            return
        with torch.enable_grad():
            block = self.with_tensors(*leaves).block(places, rows, cols)
        grad = sum_to(grad, block)
        for total, part in zip(into, torch.autograd.grad(block, leaves, grad.to(block.dtype)), strict=True):
            total.add_(part)

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        """Raise ValueError where this bias doesn't fit the call."""

    def __add__(self, other: Bias) -> Bias:
        return Sum(self, other) if isinstance(other, Bias) else NotImplemented


@dataclass(frozen=True, eq=False)
class Sum(Bias):
    """Both biases are added."""

    left: Bias
    right: Bias

    def tensors(self) -> tuple[Tensor, ...]:
        return self.left.tensors() + self.right.tensors()

    def with_tensors(self, *tensors: Tensor) -> Bias:
        n = len(self.left.tensors())
        return Sum(self.left.with_tensors(*tensors[:n]), self.right.with_tensors(*tensors[n:]))

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return self.left.scores(q_pos, k_pos) + self.right.scores(q_pos, k_pos)

    def block(self, places: Places, rows: Any, cols: Any) -> Tensor:
        return self.left.block(places, rows, cols) + self.right.block(places, rows, cols)

    def select(self, batch: tuple[int, ...], index: slice) -> Bias:
        return Sum(self.left.select(batch, index), self.right.select(batch, index))

    def backward(self, places: Places, rows: Any, cols: Any, grad: Tensor, into: tuple[Tensor, ...]) -> None:
        n = len(self.left.tensors())
        self.left.backward(places, rows, cols, grad, into[:n])
        self.right.backward(places, rows, cols, grad, into[n:])

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        self.left.check(batch=batch, heads=heads, q_len=q_len, k_len=k_len)
        self.right.check(batch=batch, heads=heads, q_len=q_len, k_len=k_len)


def sum_to(grad: Tensor, block: Tensor) -> Tensor:
    """Sum a gradient over what `block` was broadcast along."""
    while grad.ndim > block.ndim:
        grad = grad.sum(dim=0)
    narrow = [i for i, size in enumerate(block.shape) if size == 1 and grad.shape[i] != 1]
    return grad.sum(dim=narrow, keepdim=True) if narrow else grad
