"""Rectangles of the score matrix: which ones are needed, and the scores in one.

Every function here takes a flat problem (all batch dimensions as one, see `Problem.flatten`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.kernels.live import grouped_matmul, live_scores
from headwise.kernels.problem import Problem
from headwise.masks.base import Tile
from headwise.masks.frame import Index

KEY_TILE = 64  # keys per tile of a mask: small enough that windows cost little, large enough for a GEMM


@dataclass(frozen=True)
class Strip:
    """Some query rows and the keys that any of them may attend to.

    `partial` is the part of `cols` (as a slice of places in `cols`) outside which every row may attend to
    every key; None where that holds everywhere.
    """

    rows: slice
    cols: Index
    partial: slice | None

    @property
    def height(self) -> int:
        return int(self.rows.stop - self.rows.start)

    @property
    def width(self) -> int:
        return int(self.cols.stop - self.cols.start if isinstance(self.cols, slice) else len(self.cols))


def strips(problem: Problem, height: int) -> Iterator[Strip]:
    """Cut the score matrix into strips of `height` query rows, leaving out keys that nobody in the
    strip may attend to (that may be all keys: the width is then 0). Batch entries and heads share a
    strip."""
    q_len, k_len = problem.frame.q_len, problem.frame.k_len
    starts = range(0, q_len, height)
    if problem.mask is None or k_len == 0:
        for start in starts:
            yield Strip(slice(start, min(start + height, q_len)), slice(0, k_len), None)
        return
    if torch.compiler.is_compiling():  # a graph can't look at tiles: every key, with the mask over all
        for start in starts:
            cols = slice(0, k_len)
            yield Strip(slice(start, min(start + height, q_len)), cols, cols)
        return
    tiles = problem.mask.tiles(problem.frame, height, KEY_TILE)
    tiles = tiles.reshape(-1, *tiles.shape[-2:])
    empty, full = (tiles == Tile.EMPTY).all(0), (tiles == Tile.FULL).all(0)
    codes = torch.where(empty, int(Tile.EMPTY), torch.where(full, int(Tile.FULL), int(Tile.PARTIAL)))
    for start, row in zip(starts, codes.expand(len(starts), -(-k_len // KEY_TILE)).tolist(), strict=True):
        yield _strip(slice(start, min(start + height, q_len)), row, k_len, problem.frame.device)


def _strip(rows: slice, codes: list[int], k_len: int, device: torch.device) -> Strip:
    used = [i for i, code in enumerate(codes) if code != Tile.EMPTY]
    if not used:
        return Strip(rows, slice(0, 0), None)
    first, last = used[0], used[-1]
    mixed = [place for place, i in enumerate(used) if codes[i] != Tile.FULL]
    cols: Index
    if last - first + 1 == len(used):
        cols = slice(first * KEY_TILE, min((last + 1) * KEY_TILE, k_len))
        width = cols.stop - cols.start
    else:
        cols = torch.cat(
            [torch.arange(i * KEY_TILE, min((i + 1) * KEY_TILE, k_len), device=device) for i in used]
        )
        width = len(cols)
    if not mixed:
        return Strip(rows, cols, None)
    return Strip(rows, cols, slice(mixed[0] * KEY_TILE, min((mixed[-1] + 1) * KEY_TILE, width)))


def within(index: Index, part: slice) -> Index:
    """The part of an index: `within(slice(10, 20), slice(2, 4))` is slice(12, 14)."""
    if isinstance(index, slice):
        return slice(index.start + part.start, index.start + part.stop)
    return index[part]


def fold(block: Tensor) -> Tensor:
    """A block broadcastable to [B, H, rows, cols], with exactly four dimensions."""
    return block.reshape((1,) * (4 - block.ndim) + block.shape)


def allowed(problem: Problem, rows: Index, cols: Index) -> Tensor | None:
    """The mask's block, [B or 1, H or 1, rows or 1, cols or 1]; None without a mask."""
    return None if problem.mask is None else fold(problem.mask.block(problem.frame, rows, cols))


def block_scores(problem: Problem, rows: Index, cols: Index, *, finite: bool = False) -> Tensor:
    """Scores of the rectangle rows x cols, [B, H, r, c], as `Problem` defines them; differentiable.

    What is masked is -inf and sends back a gradient of exactly 0, also where the key holds NaN; a caller
    who knows that all of q and k is finite says so and saves a product.
    """
    problem = problem.flatten()
    dtype = problem.score_dtype
    q = problem.q[:, :, rows].to(dtype)
    k = problem.k[:, :, cols].to(dtype)
    q = q * problem.scale
    scores = grouped_matmul(q, k.mT) if finite else live_scores(q, k)
    if problem.softcap is not None:
        scores = problem.softcap * torch.tanh(scores / problem.softcap)
    if problem.bias is not None:
        bias = fold(problem.bias.block(problem.frame, rows, cols)).to(dtype)
        scores = torch.where(bias == float("-inf"), bias, scores + bias)  # NaN - inf would be NaN
    allow = allowed(problem, rows, cols)
    return scores if allow is None else torch.where(allow, scores, float("-inf"))
