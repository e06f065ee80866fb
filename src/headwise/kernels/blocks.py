"""Rectangles of the score matrix: which ones are needed, and the scores in one.

Every function here takes a flat problem (all batch dimensions as one, see `Problem.flatten`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.kernels.problem import Problem
from headwise.masks.base import Tile
from headwise.masks.frame import Frame, Index

KEY_TILE = 64  # keys per tile of a mask: small enough that windows cost little, large enough for a GEMM


@dataclass(frozen=True)
class Strip:
    """Some query rows and the keys that any of them may attend to.

    `cols` is None where there are none. `partial` is the part of `cols` (as a slice of places in
    `cols`) outside which every row may attend to every key; None where that holds everywhere.
    """

    rows: slice
    cols: Index | None
    partial: slice | None

    @property
    def height(self) -> int:
        return int(self.rows.stop - self.rows.start)

    @property
    def width(self) -> int:
        if self.cols is None:
            return 0
        return int(self.cols.stop - self.cols.start if isinstance(self.cols, slice) else len(self.cols))


def strips(problem: Problem, height: int) -> Iterator[Strip]:
    """Cut the score matrix into strips of `height` query rows, leaving out keys that nobody in the
    strip may attend to. Batch entries and heads share a strip."""
    q_len, k_len = problem.frame.q_len, problem.frame.k_len
    starts = range(0, q_len, height)
    if problem.mask is None or k_len == 0:
        cols = slice(0, k_len) if k_len else None
        for start in starts:
            yield Strip(slice(start, min(start + height, q_len)), cols, None)
        return
    tiles = problem.mask.tiles(problem.frame, height, KEY_TILE)
    tiles = tiles.reshape(-1, *tiles.shape[-2:])
    codes = torch.where(
        (tiles == Tile.EMPTY).all(0), int(Tile.EMPTY), torch.where((tiles == Tile.FULL).all(0), 2, 1)
    )
    for start, row in zip(starts, codes.expand(len(starts), -(-k_len // KEY_TILE)).tolist(), strict=True):
        yield _strip(slice(start, min(start + height, q_len)), row, k_len, problem.frame.device)


def _strip(rows: slice, codes: list[int], k_len: int, device: torch.device) -> Strip:
    used = [i for i, code in enumerate(codes) if code != Tile.EMPTY]
    if not used:
        return Strip(rows, None, None)
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


def visible_columns(problem: Problem, rows: slice) -> Index:
    """Keys that any query of the contiguous `rows` may attend to."""
    frame = problem.frame
    part = Frame(
        frame.batch, frame.heads, rows.stop - rows.start, frame.k_len, frame.q_pos[..., rows], frame.k_pos
    )
    if problem.mask is None:
        return slice(0, frame.k_len)
    height = max(1, part.q_len)
    # A mask that indexes a tensor by row can't be asked about part of the rows by position alone, so
    # ask about the strip in the whole, when the strip is one of those that `strips` would cut.
    for strip in strips(problem, height):
        if strip.rows.start <= rows.start < strip.rows.stop and rows.stop <= strip.rows.stop:
            return slice(0, 0) if strip.cols is None else strip.cols
    return slice(0, frame.k_len)


def block_scores(problem: Problem, rows: Index, cols: Index) -> Tensor:
    """Scores of the rectangle rows x cols, [B, H, r, c], as `Problem` defines them; differentiable.

    What is masked is -inf and sends back a gradient of exactly 0, also where the key holds NaN.
    """
    problem = problem.flatten()
    dtype = problem.score_dtype
    q = problem.q[:, :, rows].to(dtype)
    k = problem.k[:, :, cols].to(dtype)
    scores = live_scores(q * problem.scale, k)
    if problem.softcap is not None:
        scores = problem.softcap * torch.tanh(scores / problem.softcap)
    if problem.bias is not None:
        scores = scores + fold(problem.bias.block(problem.frame, rows, cols)).to(dtype)
    allow = allowed(problem, rows, cols)
    return scores if allow is None else torch.where(allow, scores, float("-inf"))


def live_scores(q: Tensor, k: Tensor) -> Tensor:
    """q k^T for grouped heads: q [..., H, r, d], k [..., Hk, c, d] -> [..., H, r, c].

    A row of q or k that holds NaN or Inf takes part as a constant: the product is what it should be,
    but no gradient is multiplied by it, so that 0 x NaN never reaches a gradient.
    """
    q_ok, k_ok = finite_rows(q), finite_rows(k)
    smooth = grouped_matmul(torch.where(q_ok, q, 0), torch.where(k_ok, k, 0).mT)
    ok = grouped_and(q_ok, k_ok)
    return torch.where(ok, smooth, grouped_matmul(q.detach(), k.detach().mT))


def finite_rows(x: Tensor) -> Tensor:
    """[..., n, 1]: whether every entry of the row is finite."""
    return x.detach().isfinite().all(-1, keepdim=True)


def grouped_matmul(left: Tensor, right: Tensor) -> Tensor:
    """left [..., H, r, n] @ right [..., Hk, n, c], where query head i meets key/value head
    i // (H / Hk); the right side is not copied."""
    heads, kv_heads = left.shape[-3], right.shape[-3]
    if heads == kv_heads:
        return left @ right
    rows = left.shape[-2]
    folded = left.unflatten(-3, (kv_heads, heads // kv_heads)).flatten(-3, -2)  # [..., Hk, G r, n]
    return (folded @ right).unflatten(-2, (heads // kv_heads, rows)).flatten(-4, -3)


def grouped_and(q_ok: Tensor, k_ok: Tensor) -> Tensor:
    groups = q_ok.shape[-3] // k_ok.shape[-3]
    return q_ok & k_ok.repeat_interleave(groups, dim=-3).mT
