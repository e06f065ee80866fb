"""What an observer says of one block after another, put together."""

from __future__ import annotations

import functools

import torch
from torch import Tensor


class Join:
    """Puts together what an observer says of block after block."""

    def __init__(self, how: str, count: int, graph: bool) -> None:
        self.how = how
        self.count = count  # rows in all
        self.graph = graph
        self.whole: tuple[Tensor, ...] = ()
        self.pieces: list[tuple[Tensor, ...]] = []
        self.sums: list[tuple[int, tuple[Tensor, ...]]] = []  # of so many pieces each, fewer and fewer

    def add(self, piece: tuple[Tensor, ...], start: int) -> None:
        if self.how == "sum":  # equals with equals: one by one, thousands of equal numbers would drift
            count = 1
            while self.sums and self.sums[-1][0] == count:
                piece, count = _added(self.sums.pop()[1], piece), 2 * count
            self.sums.append((count, piece))
        elif self.graph or all(part.shape[2] == self.count for part in piece):
            self.pieces.append(piece)
        else:  # written in place, so that the largest result, the weights, is held once
            if not self.whole:
                self.whole = tuple(p.new_empty((*p.shape[:2], self.count, *p.shape[3:])) for p in piece)
            for whole, part in zip(self.whole, piece, strict=True):
                whole[:, :, start : start + part.shape[2]] = part

    def joined(self) -> tuple[Tensor, ...]:
        if self.sums:
            return functools.reduce(
                lambda last, sum: _added(sum[1], last), self.sums[-2::-1], self.sums[-1][1]
            )
        if self.pieces:
            return tuple(
                torch.cat(same, dim=2) if len(same) > 1 else same[0]
                for same in zip(*self.pieces, strict=True)
            )
        return self.whole


def _added(some: tuple[Tensor, ...], more: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(a + b for a, b in zip(some, more, strict=True))


def over_heads(by_part: list[tuple[Tensor, ...]], order: list[int]) -> tuple[Tensor, ...]:
    """The parts side by side along the heads, in the order in which the heads were asked for."""
    same_heads = zip(*by_part, strict=True)
    joined = by_part[0] if len(by_part) == 1 else tuple(torch.cat(same, dim=1) for same in same_heads)
    if order == sorted(order):
        return joined
    inverse = torch.tensor(order, device=joined[0].device).argsort()
    return tuple(whole.index_select(1, inverse) for whole in joined)
