"""Masks as the compiled kernel reads them: bands, ranges of keys, document numbers and a matrix.

A mask is split at its `&`. Each part is one of the forms below, and all of them together are what the
kernel takes, with i and j the row and the column of a score:

    band      low <= j - i <= high (Causal, Window), or j < prefix (Causal() | Prefix(n))
    ends      begin <= j < end, for each batch entry (KeyLengths, Prefix, ValidKeys)
    ranges    first <= j < last, for each row (what depends on positions that are given as a tensor)
    ids       q_ids_i == k_ids_j >= 0 (Documents)
    matrix    Allow, and any other mask where the whole matrix is small
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TypeGuard

import torch
from torch import Tensor

from headwise.kernels.addresses import address, as_stored
from headwise.kernels.blocks import fold
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.masks.base import And, Or
from headwise.masks.frame import Frame

SMALL = 1 << 22  # bytes of a matrix that is made of a mask of another form: a fixed budget
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1  # a band without a bound

Band = tuple[int, int]


@dataclass
class Parts:
    """What a mask comes to. Tensors are kept here, since the kernel is handed their addresses."""

    low: int = LOWEST
    high: int = HIGHEST
    prefix: Tensor | None = None  # int64 [B or 1]
    begin: Tensor | None = None  # int64 [B or 1]
    end: Tensor | None = None  # int64 [B or 1]
    ranges: Tensor | None = None  # int32 [B or 1, q_len, 1, 2]
    q_ids: Tensor | None = None  # int64 [B or 1, q_len]
    k_ids: Tensor | None = None  # int64 [B or 1, k_len]
    dense: Tensor | None = None  # bool [B or 1, H or 1, q_len or 1, k_len or 1]
    rest: list[Mask] = field(default_factory=list)  # what becomes a matrix


def untranslatable(mask: Mask | None, frame: Frame) -> str | None:
    """Why the kernel can't take a mask; None if it can. Looks at kinds and sizes, never at values."""
    if mask is None or _small(frame):
        return None
    documents = matrices = 0
    prefixed = banded = False
    for part in _conjuncts(mask):
        if type(part) is Documents:
            documents += 1
        elif type(part) is Allow:
            matrices += 1
        elif _is_band(part):
            banded = True
            if frame.k_start is None:
                return _at_positions(part)
        elif _is_end(part) or type(part) is ValidKeys:
            if frame.k_start is None:
                return _at_positions(part)
        elif _or_prefix(part) is not None:
            if frame.k_start is None or frame.q_start is None:
                return _at_positions(part)
            if prefixed:
                return f"mask {part.describe()}: a second one of this kind"
            prefixed = True
        else:
            return (
                f"mask {part.describe()}: its keys are no range, and its matrix of q_len x k_len = "
                f"{frame.q_len} x {frame.k_len} (of all heads {_pairs(frame):,} pairs) is above {SMALL:,}"
            )
    if prefixed and banded:
        return "mask: a prefix beside another band has two ranges of keys"
    if documents > 1:
        return f"mask: {documents} different sets of documents, and it takes one"
    if matrices > 1:
        return f"mask: {matrices} matrices, and it takes one"
    return None


def translate(mask: Mask | None, frame: Frame) -> Parts | None:
    """The parts of a mask of a flat problem that `untranslatable` says nothing against; None without one."""
    if mask is None:
        return None
    parts = Parts()
    for part in _conjuncts(mask):
        _add(parts, part, frame)
    if parts.rest:
        dense = parts.dense
        for other in parts.rest:
            block = _matrix(other, frame)
            dense = block if dense is None else dense & block
        parts.dense = dense
    return parts


def numbers(parts: Parts) -> tuple[int, ...]:
    """`Parts` in the order in which csrc/reader.hpp reads them."""
    ranges, dense = parts.ranges, parts.dense
    return (
        parts.low,
        parts.high,
        *_each(parts.prefix),
        *_each(parts.begin),
        *_each(parts.end),
        *((0, 0, 0, 0, 0) if ranges is None else (address(ranges), _step(ranges), 0, ranges.stride(1), 1)),
        *_each(parts.q_ids),
        *_each(parts.k_ids),
        *((0, 0, 0, 0, 0) if dense is None else (address(dense), *map(dense_step, [dense] * 4, range(4)))),
    )


def dense_step(x: Tensor, dim: int) -> int:
    """The stride of a dimension; 0 where it is broadcast."""
    return x.stride(dim) if x.shape[dim] != 1 else 0


def _each(x: Tensor | None) -> tuple[int, int]:
    return (0, 0) if x is None else (address(x), _step(x))


def _step(x: Tensor) -> int:
    return dense_step(x, 0)


def _small(frame: Frame) -> bool:
    return _pairs(frame) <= SMALL


def _pairs(frame: Frame) -> int:
    return prod(frame.batch) * frame.heads * frame.q_len * frame.k_len


def _conjuncts(mask: Mask) -> Iterator[Mask]:
    if type(mask) is And:
        yield from _conjuncts(mask.left)
        yield from _conjuncts(mask.right)
    else:
        yield mask


# By their types themselves: a class made of one of these may allow other keys.


def _is_band(mask: Mask) -> TypeGuard[Causal | Window]:
    return type(mask) in (Causal, Window)


def _is_end(mask: Mask) -> TypeGuard[KeyLengths | Prefix]:
    return type(mask) in (KeyLengths, Prefix)


def _or_prefix(mask: Mask) -> tuple[Causal | Window, Prefix] | None:
    """The two sides of `Causal() | Prefix(n)`, in either order."""
    if type(mask) is Or:
        for band, prefix in ((mask.left, mask.right), (mask.right, mask.left)):
            if _is_band(band) and type(prefix) is Prefix:
                return band, prefix
    return None


def _at_positions(mask: Mask) -> str:
    return f"mask {mask.describe()}: keys stand at positions that are given, and so are no range"


def _add(parts: Parts, mask: Mask, frame: Frame) -> None:
    """Add one conjunct."""
    or_prefix = _or_prefix(mask)
    if _is_band(mask) and frame.k_start is not None:
        if frame.q_start is not None:
            low, high = _band(mask, frame.q_start - frame.k_start)
            if parts.prefix is None:
                parts.low, parts.high = max(parts.low, low), min(parts.high, high)
                return
        else:
            _meet_ranges(parts, mask, frame)
            return
    elif _is_end(mask) and frame.k_start is not None:
        end = _per_entry(mask, frame.k_start)
        parts.end = end if parts.end is None else torch.minimum(parts.end, end)
        return
    elif type(mask) is ValidKeys and frame.k_start is not None:
        parts.begin = torch.tensor([-frame.k_start], device="cpu")
        return
    elif type(mask) is Documents and parts.q_ids is None:
        q_ids, k_ids = mask.rows_and_keys(frame)
        parts.q_ids, parts.k_ids = _whole(_rows(q_ids), mask), _whole(_rows(k_ids), mask)
        return
    elif type(mask) is Allow and parts.dense is None:
        parts.dense = _matrix(mask, frame)
        return
    elif or_prefix is not None and frame.k_start is not None and frame.q_start is not None and _free(parts):
        band, prefix = or_prefix
        parts.low, parts.high = _band(band, frame.q_start - frame.k_start)
        parts.prefix = _per_entry(prefix, frame.k_start)
        return
    parts.rest.append(mask)


def _free(parts: Parts) -> bool:
    """Whether there is no band yet, so that a prefix can be beside a new one."""
    return parts.prefix is None and (parts.low, parts.high) == (LOWEST, HIGHEST)


def _band(mask: Causal | Window, ahead: int) -> Band:
    """Bounds of j - i, where the query of row 0 stands `ahead` of the key of column 0."""
    if isinstance(mask, Causal):
        return LOWEST, ahead
    low = LOWEST if mask.before is None else max(LOWEST, ahead - mask.before)
    high = HIGHEST if mask.after is None else min(HIGHEST, ahead + mask.after)
    return low, high


def _meet_ranges(parts: Parts, mask: Causal | Window, frame: Frame) -> None:
    """Where queries stand at positions that are given, every row has its own range of keys."""
    if frame.k_start is None:
        raise ValueError("a range of keys needs keys that count up")
    low, high = _band(mask, -frame.k_start)
    at = _rows(frame.q_pos)  # [B or 1, q_len]
    first = torch.zeros_like(at) if low == LOWEST else _moved(at, low, frame.k_len)
    last = torch.full_like(at, frame.k_len) if high == HIGHEST else _moved(at, high + 1, frame.k_len)
    ranges = torch.stack((first, last), -1).to(torch.int32).unsqueeze(-2)
    if parts.ranges is not None:
        met = torch.maximum(parts.ranges[..., 0], ranges[..., 0])
        ranges = torch.stack((met, torch.minimum(parts.ranges[..., 1], ranges[..., 1])), -1)
    parts.ranges = ranges.contiguous()


def _moved(at: Tensor, by: int, k_len: int) -> Tensor:
    """at + by, but at least 0 and at most k_len; positions may be any of 64 bits."""
    low, high = (min(max(bound - by, LOWEST), HIGHEST) for bound in (0, k_len))
    return (at.clamp(low, high) + by).clamp_(0, k_len)


def _matrix(mask: Mask, frame: Frame) -> Tensor:
    """The whole matrix of a mask, [B or 1, H or 1, q_len or 1, k_len or 1]. The kernel reads its memory, so
    what a mask of one's own gives is looked at first."""
    block = mask.block(frame, slice(0, frame.q_len), slice(0, frame.k_len))
    if block.dtype != torch.bool:
        raise TypeError(f"{_gave(mask)} of {block.dtype}: expected bool, True where the query may attend")
    size = (prod(frame.batch), frame.heads, frame.q_len, frame.k_len)
    folded = fold(block)
    if folded.ndim != 4 or any(have not in (1, want) for have, want in zip(folded.shape, size, strict=True)):
        raise ValueError(
            f"{_gave(mask)} of shape {tuple(block.shape)}: expected one that broadcasts to "
            f"[batch, heads, q_len, k_len] = {size}"
        )
    return folded


def _whole(ids: Tensor, mask: Mask) -> Tensor:
    if ids.dtype != torch.int64:
        raise TypeError(f"{_gave(mask)} of {ids.dtype}: expected int64")
    return ids


def _gave(mask: Mask) -> str:
    return f"the mask {type(mask).__name__} gave a tensor"


def _per_entry(mask: KeyLengths | Prefix, k_start: int) -> Tensor:
    """How many of the call's keys lie below the length, int64 [B or 1]."""
    lengths = mask.lengths
    if isinstance(lengths, Tensor):
        return lengths.reshape(-1).to(torch.int64) - k_start
    if not isinstance(lengths, int):
        raise TypeError(f"lengths are {type(lengths).__name__}: a mask makes a tensor of them")
    return torch.tensor([min(lengths, 1 << 62) - k_start], device="cpu")


def _rows(x: Tensor) -> Tensor:
    """[n] or [B, n] -> [1 or B, n], rows side by side."""
    x = as_stored(x if x.ndim > 1 else x.unsqueeze(0))
    return x if x.stride(-1) == 1 else x.contiguous()
