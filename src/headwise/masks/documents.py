"""Several documents in one sequence, each deaf to the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from headwise.masks.base import Mask, tile_codes
from headwise.masks.fits import (
    INTEGERS,
    batch_like,
    counts,
    dtype_name,
    highest_position,
    readable,
    same_device,
    some_values,
)
from headwise.masks.frame import Frame, Index, as_cols, as_rows, block_ends

NOBODY = -1  # the id of padding, and of positions that no id was given for


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Mask):
    """A query attends to the keys of its own document: ids[q_pos] == ids[k_pos] >= 0.

    Tokens with a negative id are padding: they attend to nothing and are attended by nobody. So do
    positions below 0 (they have no id). Ids need no order; where they are sorted, tiles are exact.

    Args:
        ids: int [length] or [*batch, length]: the document of each position. It may be longer than
            the call, as when a sequence is decoded in pieces, never shorter. (For positions of your own
            on an accelerator this isn't checked, as that would wait for the device: positions beyond
            the ids are padding.)
        query_ids: int [q_len] or [*batch, q_len], for cross-attention: the document of each query
            row; `ids` then speaks of the keys alone.

    Raises:
        TypeError: ids that are no int tensor.
        ValueError: at the call: fewer ids than positions, a shape that doesn't broadcast to
            [*batch, length], another device.
    """

    trailing: ClassVar[Mapping[str, int]] = {"ids": 1, "query_ids": 1}

    ids: Tensor
    query_ids: Tensor | None = None

    def __post_init__(self) -> None:
        for name, ids in (("ids", self.ids), ("query_ids", self.query_ids)):
            if ids is None and name == "query_ids":
                continue
            if not isinstance(ids, Tensor):
                fix = f": pass torch.tensor({ids!r})" if isinstance(ids, list | tuple) else ""
                raise TypeError(f"Documents({name}=...) takes an int tensor, got {type(ids).__name__}{fix}")
            if ids.dtype not in INTEGERS:
                raise TypeError(
                    f"Documents({name}=...) takes an int tensor of document numbers, got {dtype_name(ids)} "
                    f"of shape {list(ids.shape)}: pass {name}.long() if its values are the numbers"
                )
            if ids.ndim == 0:
                raise ValueError(
                    f"Documents({name}=...) takes a number per position, [length] or [*batch, length], "
                    "got a single number"
                )
            object.__setattr__(self, name, ids.long())  # room for NOBODY, also from uint8

    @classmethod
    def from_lengths(cls, lengths: Tensor) -> Documents:
        """Documents one after another, of these lengths: int [documents]."""
        counts("Documents.from_lengths", lengths)
        if not isinstance(lengths, Tensor) or lengths.ndim != 1:
            raise ValueError(f"Documents.from_lengths takes an int tensor [documents], got {lengths!r}")
        if readable(lengths) and bool((lengths < 0).any()):
            raise ValueError(
                f"Documents.from_lengths: a length counts tokens, 0 or more, but there are "
                f"{some_values(lengths)}"
            )
        return cls(torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths.long()))

    @classmethod
    def from_cu_seqlens(cls, cu_seqlens: Tensor) -> Documents:
        """flash-attn's and torch varlen's `cu_seqlens`: int [documents + 1], where each document starts,
        from 0 to the total length."""
        counts("Documents.from_cu_seqlens", cu_seqlens)
        if not isinstance(cu_seqlens, Tensor) or cu_seqlens.ndim != 1 or len(cu_seqlens) < 1:
            raise ValueError(
                f"Documents.from_cu_seqlens takes an int tensor [documents + 1], got {cu_seqlens!r}"
            )
        starts = cu_seqlens.long()
        if readable(starts) and (int(starts[0]) != 0 or bool((starts.diff() < 0).any())):
            raise ValueError(
                "Documents.from_cu_seqlens: where each document starts goes up from 0 to the total length, "
                f"but there are {some_values(starts)}: for lengths, use Documents.from_lengths"
            )
        return cls.from_lengths(starts.diff())

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        if self.query_ids is not None:
            raise TypeError(
                "Documents with query_ids speaks of query rows, not of positions: use block(frame, ...)"
            )
        return _same(_ids_at(self.ids, q_pos), _ids_at(self.ids, k_pos))

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        if self.query_ids is None:
            return self.allow(frame.q(rows), frame.k(cols))
        return _same(as_rows(self.query_ids[..., rows]), _ids_at(self.ids, frame.k(cols)))

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        q_ids, k_ids = self.rows_and_keys(frame)
        q_low, q_high, q_only = (as_rows(end) for end in _ends_of_ids(q_ids, q_block, none=-2))
        k_low, k_high, k_only = (as_cols(end) for end in _ends_of_ids(k_ids, k_block, none=-3))
        some = (q_low <= k_high) & (k_low <= q_high)
        every = q_only == k_only
        return tile_codes(some, every)

    def rows_and_keys(self, frame: Frame) -> tuple[Tensor, Tensor]:
        """The document of every row and of every key of a call: twice [length] or [*batch, length]."""
        q_ids = self.query_ids
        if q_ids is None:
            q_ids = _ids_along(self.ids, frame.q_pos, frame.q_start, frame.q_len)
        return q_ids, _ids_along(self.ids, frame.k_pos, frame.k_start, frame.k_len)

    def check(self, frame: Frame) -> None:
        lasts = {
            "keys": highest_position(frame.k_pos, frame.k_start, frame.k_len),
            "queries": highest_position(frame.q_pos, frame.q_start, frame.q_len),
        }
        if self.query_ids is not None:
            lasts.pop("queries")
            if self.query_ids.shape[-1] != frame.q_len:
                raise ValueError(
                    f"Documents: query_ids has {self.query_ids.shape[-1]} entries and there are "
                    f"{frame.q_len} queries: it takes one document number per query row"
                )
            batch_like("Documents", "query_ids[..., 0]", self.query_ids.shape[:-1], frame.batch)
            same_device("Documents(query_ids=...)", self.query_ids, frame)
        for who, last in lasts.items():
            if last is not None and last >= self.ids.shape[-1]:
                raise ValueError(
                    f"Documents: ids covers the positions 0 to {self.ids.shape[-1] - 1}, but the {who} go up "
                    f"to position {last}: pass one document number per position (a negative one is padding)"
                    + ("" if self.query_ids is not None else ", and query_ids= for cross-attention")
                )
        batch_like("Documents", "ids[..., 0]", self.ids.shape[:-1], frame.batch)
        same_device("Documents", self.ids, frame)

    def describe(self) -> str:
        cross = "" if self.query_ids is None else f", query ids of shape {list(self.query_ids.shape)}"
        return f"documents (ids of shape {list(self.ids.shape)}{cross})"

    def natural_lengths(self) -> tuple[int | None, int | None]:
        q_len = None if self.query_ids is None else self.query_ids.shape[-1]
        return q_len, self.ids.shape[-1]


def _same(q_ids: Tensor, k_ids: Tensor) -> Tensor:
    return (q_ids == k_ids) & (q_ids >= 0)


def _ids_at(ids: Tensor, pos: Tensor) -> Tensor:
    """ids[*batch, pos], broadcastable to [*batch, heads, q, k]; NOBODY outside.

    Shapes: ids [*batch or fewer, length]; pos [..., q, 1] or [..., 1, k].
    """
    length = ids.shape[-1]
    if length == 0:
        return torch.full_like(pos, NOBODY)
    inside = (pos >= 0) & (pos < length)
    at = pos.clamp(0, length - 1)
    if ids.ndim == 1:
        found = ids[at]
    elif pos.ndim <= 2:
        found = ids[..., at].unsqueeze(-3)  # [*batch, 1, q, 1]
    else:
        batch = torch.broadcast_shapes(ids.shape[:-1], at.shape[:-3])
        at = at.expand(*batch, *at.shape[-3:])
        found = ids.expand(*batch, length).gather(-1, at.flatten(-3)).view(at.shape)
    return found.where(inside, NOBODY)


def _ids_along(ids: Tensor, pos: Tensor, start: int | None, length: int) -> Tensor:
    """The document of every row or column, [length] or [*batch, length]."""
    if start == 0 and length <= ids.shape[-1]:
        return ids[..., :length]
    found = _ids_at(ids, pos.unsqueeze(-2) if pos.ndim == 1 else pos.unsqueeze(-2).unsqueeze(-2))
    return found.squeeze(-2) if found.ndim <= 2 else found.squeeze(-2).squeeze(-2)


def _ends_of_ids(ids: Tensor, block: int, *, none: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each block: its lowest id without padding (beyond every id where all is padding), its highest
    id, and the id that all of it shares (`none` where there is no such id)."""
    first, high = block_ends(ids, block)
    low, _ = block_ends(ids.where(ids >= 0, torch.iinfo(ids.dtype).max), block)
    return low, high, high.where((first == high) & (high >= 0), none)
