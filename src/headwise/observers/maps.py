"""The whole matrix in a few cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from headwise.observers.base import Block, Observer, chosen


@dataclass(frozen=True, eq=False)
class Map(Observer):
    """A picture of the whole matrix, small enough to keep at any length.

    Queries and keys are cut into cells of consecutive indices, as evenly as they go: index i of n falls
    into cell floor(i cells / n), so that sizes differ by at most 1. Where there are more cells than
    tokens, each token is a cell of its own (the map is then the matrix itself).

        M_ab = (1 / |a|) sum_{i in a} sum_{j in b} P_ij

    the mass that the queries of cell a give to the keys of cell b, divided by the number of queries
    in a: a row of the map sums to 1, less the share of its queries that may attend to nothing (and
    what sinks take).

    Result: [*batch, heads, min(q_cells, q_len), min(k_cells, k_len)], unit: share of 1. With `rows=`,
    |a| counts the chosen queries in a, and a cell without any is 0.

    Args:
        cells: number of cells along each side, or (q_cells, k_cells).

    Raises:
        TypeError, ValueError: cells is not an int or a pair of ints, or below 1.
    """

    cells: int | tuple[int, int] = 64

    joins: ClassVar[Literal["rows", "sum"]] = "sum"

    def __post_init__(self) -> None:
        pair = (self.cells, self.cells) if isinstance(self.cells, int) else self.cells
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(type(n) is int for n in pair):
            raise TypeError(f"Map(cells) takes an int or a pair (q_cells, k_cells), got {self.cells!r}")
        if min(pair) < 1:
            raise ValueError(f"Map(cells) needs cells of 1 or more, got {self.cells!r}")

    @property
    def sides(self) -> tuple[int, int]:
        """(q_cells, k_cells)"""
        return (self.cells, self.cells) if isinstance(self.cells, int) else self.cells

    @property
    def name(self) -> str:
        return self.label("map", *((self.cells,) if isinstance(self.cells, int) else self.cells))

    def measure(self, block: Block) -> tuple[Tensor]:
        q_cells, k_cells = min(self.sides[0], block.q_len), min(self.sides[1], block.k_len)
        batch, heads = block.weights.shape[:2]
        q_cell = cell_of(block.rows, q_cells, block.q_len)
        k_cell = cell_of(block.cols, k_cells, block.k_len)
        # Rows first: a block spans few cells, so the large tensor is read once and little is left of it. Both
        # ways by torch's `sum`, which adds in a tree: one by one, hundreds of equal numbers drift.
        in_order, order = q_cell.sort(stable=True)
        weights = block.weights if torch.equal(in_order, q_cell) else block.weights.index_select(2, order)
        touched, counts = torch.unique_consecutive(in_order, return_counts=True)
        runs = weights.split(counts.tolist(), dim=2)
        strips = weights if len(runs) == weights.shape[2] else torch.stack([run.sum(2) for run in runs], 2)
        pooled = sum_of_runs(strips, k_cell, k_cells, -(-block.k_len // max(k_cells, 1)))
        whole = pooled.new_zeros(batch, heads, q_cells, k_cells)
        return (whole.index_copy(2, touched, pooled),)

    def finish(self, parts: tuple[Tensor, ...], *, q_len: int) -> Tensor:
        (mass,) = parts
        cells = mass.shape[-2]
        rows = chosen(self.rows, q_len, what="rows", owner=self.name)
        if rows is None:
            places = torch.arange(q_len, device="cpu")
        else:
            places = torch.tensor(rows, dtype=torch.int64, device="cpu")
        queries = torch.bincount(cell_of(places, cells, q_len), minlength=cells).clamp(min=1)
        return mass / queries.to(mass).unsqueeze(-1)


def sum_of_runs(x: Tensor, cell: Tensor, cells: int, longest: int) -> Tensor:
    """[..., n] to [..., cells]: the sum of the entries of each cell.

    Args:
        cell: [n], in rising order.
        longest: the most entries that one cell may have.
    """
    count = x.shape[-1]
    if count == 0:
        return x.new_zeros(*x.shape[:-1], cells)
    bounds = torch.searchsorted(cell, torch.arange(cells + 1, device=x.device))
    places = bounds[:-1, None] + torch.arange(longest, device=x.device)  # [cells, longest]
    entries = x[..., places.clamp(max=count - 1)]
    return torch.where(places < bounds[1:, None], entries, 0).sum(-1)


def cell_of(index: Tensor, cells: int, length: int) -> Tensor:
    """The cell of each index: floor(index cells / length), in whole numbers."""
    return index * cells // max(length, 1)
