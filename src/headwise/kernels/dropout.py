"""Dropout by counting: whether a weight is dropped is a hash of the seed and of its place.

The draw for a weight depends on (seed, batch entry, head, query, key) alone: not on the kernel, the
block, the number of threads, or the order of computation. So every kernel drops the same weights, the
backward pass draws them again instead of keeping them, and memory stays linear in length.

The hash is one round of multiply and xor-shift per row and per column, joined and mixed once more,
all modulo 2^32 in int32 (whose products wrap). It is a generator for dropout, not for cryptography.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.kernels.problem import Problem
from headwise.kernels.recomputed import in_backward
from headwise.masks.frame import Index

_MIX_1 = 0x7FEB352D
_MIX_2 = 0x846CA68B - (1 << 32)  # the same 32 bits, as a signed int32
_LOW_32 = (1 << 32) - 1


def draw_seed(generator: torch.Generator | None, device: torch.device) -> Tensor:
    """An int64 scalar from `generator` (the default one of its device if None).

    Raises:
        RuntimeError: a generator of one's own inside gradient checkpointing: torch sets back its own ones
            before it computes again, but not this one, so other weights would be dropped in silence.
    """
    if generator is not None and generator is not torch.default_generator and in_backward():
        raise RuntimeError(
            "generator= inside gradient checkpointing: computed again, the call would draw another seed and "
            "drop other weights. Leave generator= out (torch.manual_seed counts then)."
        )
    where = device if generator is None else generator.device
    seed = torch.randint(0, 2**62, (), generator=generator, device=where, dtype=torch.int64)
    return seed.to(device)


def keep(problem: Problem, rows: slice, cols: Index, kv_heads: slice = slice(None)) -> Tensor:
    """Bool [B, heads, r, c]: which weights of this block of a flat problem stay.

    `kv_heads` picks the query heads that read some of the key/value heads.
    """
    if problem.seed is None:
        raise ValueError("dropout needs a seed: build the problem with headwise.attention.problem(...)")
    frame, device = problem.frame, problem.q.device
    count, groups = frame.batch[0], problem.groups
    first, last, _ = kv_heads.indices(problem.kv_heads)
    entry = torch.arange(problem.batch_start, problem.batch_start + count, device=device)
    head = torch.arange(first * groups, last * groups, device=device)
    row = torch.arange(rows.start, rows.stop, device=device)
    place = (entry[:, None, None] * frame.heads + head[:, None]) * frame.q_len + row
    col = torch.arange(cols.start, cols.stop, device=device) if isinstance(cols, slice) else cols
    return keep_at(problem.seed, problem.dropout, place, col)


def keep_at(seed: Tensor, rate: float, rows: Tensor, cols: Tensor) -> Tensor:
    """Bool [*rows.shape, c]: which weights stay, for rows and keys given by number."""
    x = _scramble(seed + rows * 0x9E3779B1).unsqueeze(-1) ^ _scramble(seed * 0x85EBCA6B + cols)
    # Mixed bits are uniform over the signed int32; a weight is dropped below the rate's quantile.
    threshold = min(max(round(rate * 2**32), 0), 2**32 - 1) - 2**31
    return _mix(x) >= threshold


def _scramble(x: Tensor) -> Tensor:
    """int64 -> int32, well mixed. Rows and columns are few, so this may take its time."""
    x = x * 0x2545F4914F6CDD1D
    x = x ^ ((x >> 29) & ((1 << 35) - 1))
    x = x * 0x1B873593CC9E2D51
    x = (x ^ ((x >> 32) & _LOW_32)) & _LOW_32
    return torch.where(x >= 1 << 31, x - (1 << 32), x).to(torch.int32)


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32 bits in which every bit of the input moves about half of the output bits."""
    x = x * _MIX_1
    x = x ^ ((x >> 15) & 0x1FFFF)  # a logical shift: the sign bits that int32 shifts in are cut off
    x = x * _MIX_2
    return x ^ ((x >> 16) & 0xFFFF)
