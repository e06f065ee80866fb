"""Masks: who may attend to whom. True means may attend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, ClassVar

import torch
from torch import Tensor

from headwise.masks.frame import Frame, Index, select_batch


class Tile(IntEnum):
    """What a mask leaves of one rectangle of the score matrix.

    The order makes composition arithmetic: the `&` of two tiles is at most their minimum, the `|`
    at least their maximum, and `~` is 2 - tile. PARTIAL is also the answer where a rectangle was not
    looked at closely enough to say EMPTY or FULL; EMPTY and FULL are promises.
    """

    EMPTY = 0
    PARTIAL = 1
    FULL = 2


@dataclass(frozen=True, eq=False)
class Mask:
    """Base of all masks. Compose with `&`, `|` and `~`.

    A subclass gives `allow` and `tiles` (and `check` and `block` where the defaults don't serve), and
    names in `trailing` each field that holds a tensor with batch dimensions in front: how many
    dimensions follow them.
    """

    trailing: ClassVar[Mapping[str, int]] = {}

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        """Bool tensor: may the query at q_pos attend to the key at k_pos?

        Shapes: q_pos [..., q, 1] and k_pos [..., 1, k] (or any that broadcast) -> broadcastable to
        [*batch, heads, q, k].
        """
        raise NotImplementedError

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        """The mask of the rectangle rows x cols, broadcastable to [*batch, heads, rows, cols]."""
        return self.allow(frame.q(rows), frame.k(cols))

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        """int8 `Tile` codes, broadcastable to [*batch, heads, ceil(q_len/q_block), ceil(k_len/k_block)].

        Found from the ends of each block's positions, without building the matrix.
        """
        raise NotImplementedError

    def check(self, frame: Frame) -> None:
        """Raise ValueError where this mask doesn't fit the call (lengths beyond the tensors, shapes
        that don't broadcast, another device). Called before anything is computed."""

    def select(self, batch: tuple[int, ...], index: slice) -> Mask:
        """This mask for some batch entries: all batch dimensions become one, of which `index` is kept."""
        changes: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mask):
                changes[field.name] = value.select(batch, index)
            elif isinstance(value, Tensor):
                changes[field.name] = select_batch(value, self.trailing[field.name], batch, index)
        return replace(self, **changes) if changes else self

    def by_batch(self) -> bool:
        """Whether batch entries may differ in what this mask allows."""
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return any(
            value.by_batch() if isinstance(value, Mask) else value.ndim > self.trailing[name]
            for name, value in values
            if isinstance(value, Mask | Tensor)
        )

    def dense(self, frame: Frame) -> Tensor:
        """The whole matrix, bool [*batch, heads, q_len, k_len] (an expanded view where it can be)."""
        whole = slice(None)
        full = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
        return self.block(frame, whole, whole).expand(full)

    def __and__(self, other: Mask) -> Mask:
        return And(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: Mask) -> Mask:
        return Or(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> Mask:
        return Not(self)


@dataclass(frozen=True, eq=False)
class And(Mask):
    """Both masks allow."""

    left: Mask
    right: Mask

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return self.left.allow(q_pos, k_pos) & self.right.allow(q_pos, k_pos)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return self.left.block(frame, rows, cols) & self.right.block(frame, rows, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        left = self.left.tiles(frame, q_block, k_block)
        return torch.minimum(left, self.right.tiles(frame, q_block, k_block))

    def check(self, frame: Frame) -> None:
        self.left.check(frame)
        self.right.check(frame)


@dataclass(frozen=True, eq=False)
class Or(Mask):
    """At least one of the masks allows."""

    left: Mask
    right: Mask

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return self.left.allow(q_pos, k_pos) | self.right.allow(q_pos, k_pos)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return self.left.block(frame, rows, cols) | self.right.block(frame, rows, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        left = self.left.tiles(frame, q_block, k_block)
        return torch.maximum(left, self.right.tiles(frame, q_block, k_block))

    def check(self, frame: Frame) -> None:
        self.left.check(frame)
        self.right.check(frame)


@dataclass(frozen=True, eq=False)
class Not(Mask):
    """The mask does not allow."""

    mask: Mask

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return ~self.mask.allow(q_pos, k_pos)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return ~self.mask.block(frame, rows, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        return int(Tile.FULL) - self.mask.tiles(frame, q_block, k_block)

    def check(self, frame: Frame) -> None:
        self.mask.check(frame)
