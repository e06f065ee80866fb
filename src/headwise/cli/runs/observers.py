"""Observers that compare a head with one that attends evenly, and those that know what an axis means."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.observers import Block, Observer


@dataclass(frozen=True, eq=False)
class Visible(Observer):
    """How many keys a query may attend to. Result: [*batch, heads, q_len]."""

    @property
    def name(self) -> str:
        return self.label("visible")

    def measure(self, block: Block) -> tuple[Tensor]:
        return ((block.scores > -torch.inf).sum(-1).to(block.weights.dtype),)


@dataclass(frozen=True, eq=False)
class Even(Observer):
    """What another observer would say of a head that attends evenly to all keys that it may attend to."""

    of: Observer

    @property
    def name(self) -> str:
        return self.label("even", self.of.name)

    def measure(self, block: Block) -> tuple[Tensor, ...]:
        seen = (block.scores > -torch.inf).to(block.weights.dtype)
        return self.of.measure(replace(block, weights=seen / seen.sum(-1, keepdim=True).clamp(min=1)))


@dataclass(frozen=True, eq=False)
class Same(Observer):
    """What a query gives to other places of the same token. Result: [*batch, heads, q_len], share of 1.

    Args:
        ids: int64 [length], of a sequence that attends to itself.
    """

    ids: Tensor

    @property
    def name(self) -> str:
        return self.label("same")

    def measure(self, block: Block) -> tuple[Tensor]:
        rows, columns = block.rows[:, None], block.cols[None]
        same = (self.ids[rows] == self.ids[columns]) & (rows != columns)
        return (torch.where(same, block.weights, 0.0).sum(-1),)


@dataclass(frozen=True, eq=False)
class Apart(Observer):
    """How far apart a query and its keys lie in an image, in patches; the class token has no place.

        A_i = sum_j P_ij |x_i - x_j| / sum_j P_ij            j: patches

    Result: [*batch, heads, q_len]. (Dosovitskiy et al. 2020, "attention distance".)

    Args:
        grid: rows and columns of patches; token 1 + r * columns + c stands in row r and column c.
    """

    grid: tuple[int, int]

    @property
    def name(self) -> str:
        return self.label("apart")

    def measure(self, block: Block) -> tuple[Tensor]:
        columns = self.grid[1]

        def points(index: Tensor) -> Tensor:
            place = (index - 1).clamp(min=0)
            return torch.stack((place // columns, place % columns), -1).to(block.weights.dtype)

        apart = torch.cdist(points(block.rows), points(block.cols))
        weights = torch.where(block.cols > 0, block.weights, 0.0)
        mass = weights.sum(-1)
        return ((weights * apart).sum(-1) / mass.masked_fill(mass == 0, 1.0),)
