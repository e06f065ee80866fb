"""Which calls of torch's fused CPU operation a problem takes.

The operation knows no window, document or length: it takes keys, a matrix of numbers to add, and a causal
flag. So a problem is cut into strips of query rows, each with the keys that it may attend to, and a matrix
is written only for what the mask or bias leaves to say there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.kernels.blocks import Strip, allowed, fold, strips, within
from headwise.kernels.problem import Problem
from headwise.masks import Causal
from headwise.masks.frame import Index

_HEIGHT = 256  # rows of a strip: taller ones compute more of what is masked, lower ones call more often
_ADDED = 1 << 21  # numbers of mask and bias at a time: 8 MiB of float32 (twice that of a mask alone)
_SMALL = 1 << 14  # scores per head below which a mask is applied without looking at its tiles
_TOGETHER = 1 << 20  # scores per head up to which batch entries with masks of their own share a strip


@dataclass
class Call:
    """One call of the fused operation: some batch entries, all heads, some rows against some keys.

    Tensors are [n, m, rows, d] with n, m = (entries, heads), or (key/value heads, groups) of one entry
    when heads are grouped: keys are then broadcast over groups by a stride of 0, not copied.
    """

    entries: slice
    rows: slice
    cols: Index
    added: Tensor | None  # mask and bias as numbers, broadcastable to [n, m, rows, cols]
    dead: Tensor | None  # broadcastable to [n, m, rows]: rows that may attend to nothing, if there can be any
    causal: bool


def plan(problem: Problem) -> Iterator[Call]:
    """The calls that make up a flat problem. Rows that may attend to nothing may be in none."""
    frame, grouped = problem.frame, problem.groups > 1
    count, rows, cols = frame.batch[0], slice(0, frame.q_len), slice(0, frame.k_len)
    causal = _own_causal_will_do(problem)
    if causal or (problem.bias is None and (problem.mask is None or newest_query(problem))):
        for entries in _entries(count, 1 if grouped else count):
            yield Call(entries, rows, cols, None, None, causal)
        return
    together = count
    if grouped:
        together = 1
    elif problem.by_batch():
        together = max(1, _TOGETHER // max(1, frame.q_len * frame.k_len))
    if together >= count:
        yield from _strip_calls(problem, 0)
        return
    for entries in _entries(count, together):
        yield from _strip_calls(problem.select(entries), entries.start)


def _entries(count: int, together: int) -> Iterator[slice]:
    for first in range(0, count, max(1, together)):
        yield slice(first, min(first + together, count))


def _own_causal_will_do(problem: Problem) -> bool:
    """Whether the operation's causal mask, which aligns queries and keys at the start, says the same."""
    frame = problem.frame
    return (
        isinstance(problem.mask, Causal)
        and problem.bias is None
        and frame.q_start is not None
        and frame.q_start == frame.k_start
    )


def newest_query(problem: Problem) -> bool:
    """Whether a causal mask hides nothing, as when one query follows its keys."""
    frame = problem.frame
    return (
        isinstance(problem.mask, Causal)
        and frame.q_start is not None
        and frame.k_start is not None
        and frame.q_start >= frame.k_start + frame.k_len - 1
    )


def _strip_calls(problem: Problem, first: int) -> Iterator[Call]:
    entries = slice(first, first + problem.frame.batch[0])
    frame = problem.frame
    if frame.q_len * frame.k_len <= _SMALL:  # looking for keys to skip would cost more than it saves
        whole = slice(0, frame.k_len)
        found = iter([Strip(slice(0, frame.q_len), whole, None if problem.mask is None else whole)])
    else:
        found = _merged(strips(problem, _height(problem)), problem)
    for strip in found:
        if not strip.width:
            continue
        cols, added, dead = _added(problem, strip)
        if problem.groups > 1:
            added, dead = _by_group(problem, added), _by_group(problem, dead)
        yield Call(entries, strip.rows, cols, added, dead, causal=False)


def _height(problem: Problem) -> int:
    """Rows of a strip: fewer where the mask or the bias has a block for each head or entry."""
    blocks = problem.frame.heads if problem.bias is not None else 1
    if problem.mask is not None and problem.by_batch():
        blocks *= problem.frame.batch[0]
    return max(16, min(_HEIGHT, _ADDED // (blocks * max(1, problem.frame.k_len))))


def _merged(found: Iterator[Strip], problem: Problem) -> Iterator[Strip]:
    """Join neighbours that want the same keys: fewer, larger calls are a little faster."""
    room = 2 * _ADDED // max(1, problem.frame.k_len) if problem.bias is None else 0
    last: Strip | None = None
    for strip in found:
        if last is None:
            last = strip
            continue
        same = isinstance(strip.cols, slice) and last.cols == strip.cols
        if same and last.height + strip.height <= room:
            part = strip.partial if last.partial is None else last.partial
            if strip.partial is not None and last.partial is not None:
                part = slice(
                    min(last.partial.start, strip.partial.start), max(last.partial.stop, strip.partial.stop)
                )
            last = Strip(slice(last.rows.start, strip.rows.stop), last.cols, part)
        else:
            yield last
            last = strip
    if last is not None:
        yield last


def _by_group(problem: Problem, block: Tensor | None) -> Tensor | None:
    """[1, H or 1, ...] -> [Hk or 1, G or 1, ...], as `Call` wants it for grouped heads."""
    if block is None:
        return None
    heads = (problem.kv_heads, problem.groups) if block.shape[1] > 1 else (1, 1)
    return block[0].view(*heads, *block.shape[2:])


def _added(problem: Problem, strip: Strip) -> tuple[Index, Tensor | None, Tensor | None]:
    """The keys of a strip, mask and bias as numbers to add, and which rows may attend to nothing."""
    cols, dtype, minus_inf = strip.cols, problem.score_dtype, float("-inf")
    added = None
    if problem.bias is not None:
        added = fold(problem.bias.block(problem.frame, strip.rows, cols)).to(dtype)
    allow = None
    if strip.partial is not None:
        allow = allowed(problem, strip.rows, within(cols, strip.partial))
    if allow is None or strip.partial is None:
        return cols, added, None if added is None else (added == minus_inf).all(-1)
    if added is None and allow.shape[:3] == (1, 1, 1):
        kept = _kept(strip, allow.flatten())
        if kept is not None:
            return within(cols, kept), None, None
    open_part = strip.partial.stop - strip.partial.start == strip.width
    if added is None and open_part:
        dead = allow.view(torch.uint8).amax(-1) == 0  # many times as fast as any()
        return cols, _numbers(allow.expand(*allow.shape[:2], strip.height, strip.width), dtype), dead
    shape = (*allow.shape[:2], strip.height, strip.width)
    if added is None:
        added = torch.zeros(shape, dtype=dtype, device=allow.device)
    else:
        added = added.expand(torch.broadcast_shapes(added.shape, shape)).clone()
    added[..., strip.partial].masked_fill_(~allow, minus_inf)
    return cols, added, (added == minus_inf).all(-1)


def _numbers(allow: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed and -inf where not, four times as fast as `torch.where`: 1 - 1 has no bit set, and
    0 - 1 has all of them, of which -inf has the sign's and the exponent's."""
    whole, exponent = (torch.int64, -(1 << 52)) if dtype == torch.float64 else (torch.int32, -(1 << 23))
    bits = torch.empty(allow.shape, dtype=whole, device=allow.device).copy_(allow)
    return bits.sub_(1).bitwise_and_(exponent).view(dtype)


def _kept(strip: Strip, allow: Tensor) -> slice | None:
    """Which of a strip's keys are left, where the mask is the same for every row and leaves one run:
    taking those alone is faster than adding -inf to the rest."""
    if strip.partial is None:
        return None
    open_keys = torch.ones(strip.width, dtype=torch.bool, device=allow.device)
    open_keys[strip.partial] = allow
    places = open_keys.nonzero().flatten()
    if not len(places):
        return None
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else None
