"""The score matrix in slabs: what the tiled kernel holds at a time.

A slab is some batch entries and heads of one strip of query rows, with the keys that the strip may attend
to, and the scores of that block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.kernels.blocks import Strip, allowed, fold, strips, within
from headwise.kernels.dropout import keep
from headwise.kernels.live import live_product
from headwise.kernels.problem import Problem

# Scores in one slab. 4 MiB of float32 stays in a CPU's last-level cache and feeds a GEMM well; a GPU
# wants fewer, larger launches.
_SLAB = {"cpu": 1 << 20, "other": 1 << 24}
_TALLEST = 256  # rows of a strip: more wastes work on a causal diagonal
_SHORTEST = 16  # fewer starve the GEMM


def slab_size(problem: Problem) -> int:
    return _SLAB.get(problem.q.device.type, _SLAB["other"])


@dataclass
class Slab:
    """Some batch entries and key/value heads of one strip, and the scores of their block.

    n = batch entries x key/value heads of the slab, G = query heads per key/value head.
    """

    entries: slice  # of the whole (flat) problem
    kv_heads: slice
    heads: slice
    strip: Strip
    shape: tuple[int, int, int, int]  # entries, heads, rows, columns
    q: Tensor  # [n, G r, d_k]
    k: Tensor  # [n, c, d_k]
    v: Tensor  # [n, c, d_v]
    scores: Tensor  # [entries, heads, r, c]; forward and backward overwrite it
    tanh: Tensor | None  # of the scores, where there is a softcap
    allow: Tensor | None  # of the part of the columns that isn't open to every row
    live: Tensor | None  # which pairs take part; only where some value isn't finite
    keep: Tensor | None  # dropout

    def grouped(self, x: Tensor) -> Tensor:
        """[entries, heads, r, ...] -> [n, G r, ...], the shape in which a GEMM meets k and v."""
        return x.reshape(self.k.shape[0], self.q.shape[1], x.shape[-1])

    def masked_(self, x: Tensor, value: float) -> Tensor:
        """Write `value` where the mask does not allow, in place."""
        if self.allow is not None and self.strip.partial is not None:
            x[..., self.strip.partial].masked_fill_(~self.allow, value)
        return x

    def product(self, left: Tensor, right: Tensor, *, transposed: bool = False) -> Tensor:
        """left @ right, in which masked pairs take no part even if they hold NaN."""
        if self.live is None:
            return torch.bmm(left, right)
        live = self.grouped(self.live)
        return live_product(left, live.mT if transposed else live, right)


def _strip_height(problem: Problem) -> int:
    """Rows per strip, such that one key/value head's block, and the blocks that a mask or a bias makes
    for all heads at once, stay within the slab."""
    frame = problem.frame
    width = max(1, frame.k_len)
    at_once = frame.heads if problem.bias is not None else problem.groups
    rows = max(_SHORTEST, slab_size(problem) // (width * at_once))
    return max(1, min(_TALLEST, rows, frame.q_len))


def slabs(problem: Problem, finite: bool) -> Iterator[Slab]:
    """Every slab of a flat problem. Rows that may attend to nothing are in none.

    Args:
        finite: nothing that takes part is NaN or Inf, so 0 x key is 0.
    """
    frame = problem.frame
    height = _strip_height(problem)
    per_head = height * max(1, frame.k_len) * problem.groups
    entries_at_once = max(1, slab_size(problem) // (per_head * problem.kv_heads))
    if not problem.by_batch() and (problem.bias is None):
        # Nothing differs between batch entries, so one strip serves all of them.
        yield from _slabs_of(problem, slice(0, frame.batch[0]), height, entries_at_once, finite)
        return
    for first in range(0, frame.batch[0], entries_at_once):
        chosen = slice(first, min(first + entries_at_once, frame.batch[0]))
        yield from _slabs_of(problem.select(chosen), chosen, height, entries_at_once, finite)


def _slabs_of(
    problem: Problem, entries: slice, height: int, entries_at_once: int, finite: bool
) -> Iterator[Slab]:
    count = problem.frame.batch[0]
    for strip in strips(problem, height):
        if not strip.width:
            continue
        allow = None
        if strip.partial is not None:
            allow = allowed(problem, strip.rows, within(strip.cols, strip.partial))
        bias = None
        if problem.bias is not None:
            bias = fold(problem.bias.block(problem.frame, strip.rows, strip.cols))
        block = strip.height * strip.width * problem.groups
        heads_at_once = max(1, min(problem.kv_heads, slab_size(problem) // block))
        step = entries_at_once if heads_at_once == problem.kv_heads else 1
        for b in range(0, count, step):
            some = slice(b, min(b + step, count))
            for h in range(0, problem.kv_heads, heads_at_once):
                kv_heads = slice(h, min(h + heads_at_once, problem.kv_heads))
                yield _slab(problem, entries.start, some, kv_heads, strip, allow, bias, finite)


def _slab(
    problem: Problem,
    offset: int,
    entries: slice,
    kv_heads: slice,
    strip: Strip,
    allow: Tensor | None,
    bias: Tensor | None,
    finite: bool,
) -> Slab:
    groups, dtype = problem.groups, problem.score_dtype
    heads = slice(kv_heads.start * groups, kv_heads.stop * groups)
    q = problem.q[entries, heads, strip.rows].to(dtype) * problem.scale  # [b, h, r, d_k]
    k = problem.k[entries, kv_heads, strip.cols].to(dtype)  # [b, hk, c, d_k]
    v = problem.v[entries, kv_heads, strip.cols].to(dtype)
    count = k.shape[0] * k.shape[1]
    q = q.reshape(count, groups * strip.height, q.shape[-1])
    k, v = k.reshape(count, *k.shape[2:]), v.reshape(count, *v.shape[2:])
    shape = (entries.stop - entries.start, heads.stop - heads.start, strip.height, strip.width)
    scores = torch.bmm(q, k.mT).view(shape)
    tanh = None
    if problem.softcap is not None:
        tanh = scores.div_(problem.softcap).tanh_()
        scores = tanh * problem.softcap
    if bias is not None:
        added = _part(bias, entries, heads)
        scores += added
        if not finite:  # a bias of -inf hides, and NaN - inf would be NaN
            scores.masked_fill_(added == float("-inf"), float("-inf"))
    drop = None
    if problem.dropout:
        whole = problem.select(entries)
        drop = keep(whole, strip.rows, strip.cols, kv_heads)
    slab = Slab(
        entries=slice(offset + entries.start, offset + entries.stop),
        kv_heads=kv_heads,
        heads=heads,
        strip=strip,
        shape=shape,
        q=q,
        k=k,
        v=v,
        scores=scores,
        tanh=tanh,
        allow=None if allow is None else _part(allow, entries, heads),
        live=None,
        keep=drop,
    )
    slab.masked_(slab.scores, float("-inf"))
    if not finite:
        slab.live = slab.scores != float("-inf")
    return slab


def _part(block: Tensor, entries: slice, heads: slice) -> Tensor:
    """The entries and heads of a block [B or 1, H or 1, r, c]."""
    block = block if block.shape[0] == 1 else block[entries]
    return block if block.shape[1] == 1 else block[:, heads]
