"""Masks: who may attend to whom. True means may attend."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NoReturn, Self

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


@dataclass(frozen=True, eq=False, repr=False)
class Mask:
    """Base of all masks. Compose with `&`, `|` and `~`.

    A subclass gives `allow`, and `tiles` so that kernels can skip what is empty (and `check`, `block`,
    `describe`, `natural_lengths` where the defaults don't serve). It names in `trailing` every field that
    holds a tensor with batch dimensions in front: how many dimensions follow them. `check_mask` tries it.
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
        allowed = self.allow(frame.q(rows), frame.k(cols))
        if not isinstance(allowed, Tensor) or allowed.dtype != torch.bool:
            got = f"{allowed.dtype} tensor" if isinstance(allowed, Tensor) else type(allowed).__name__
            raise TypeError(
                f"{type(self).__name__}.allow returned a {got}: expected a bool tensor, True where the query "
                "may attend; numbers that are added to scores are a Bias"
            )
        return allowed

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        """int8 `Tile` codes [..., ceil(q_len/q_block), ceil(k_len/k_block)]: these two dimensions whole,
        those before them broadcastable to [*batch, heads].

        Found from the ends of each block's positions, without building the matrix. A mask that doesn't
        say is PARTIAL everywhere: right, but nothing is skipped.
        """
        size = -(-frame.q_len // q_block), -(-frame.k_len // k_block)
        return torch.full(size, int(Tile.PARTIAL), dtype=torch.int8, device=frame.device)

    def check(self, frame: Frame) -> None:
        """Raise ValueError where this mask doesn't fit the call (lengths beyond the tensors, shapes
        that don't broadcast, another device). Called before anything is computed."""

    def select(self, batch: tuple[int, ...], index: slice) -> Mask:
        """This mask for some batch entries: all batch dimensions become one, of which `index` is kept."""
        changes: dict[str, Any] = {}
        for name, value in self._parts().items():
            if isinstance(value, Mask):
                changes[name] = value.select(batch, index)
            elif isinstance(value, Tensor):
                changes[name] = select_batch(value, self.trailing[name], batch, index)
        return dataclasses.replace(self, **changes) if changes else self

    def by_batch(self) -> bool:
        """Whether batch entries may differ in what this mask allows."""
        return any(
            value.by_batch() if isinstance(value, Mask) else value.ndim > self.trailing[name]
            for name, value in self._parts().items()
            if isinstance(value, Mask | Tensor)
        )

    def dense(self, frame: Frame) -> Tensor:
        """The whole matrix, bool [*batch, heads, q_len, k_len] (an expanded view where it can be)."""
        whole = slice(None)
        full = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
        return self.block(frame, whole, whole).expand(full)

    def count(self, frame: Frame) -> Tensor:
        """How many pairs are allowed, int64 [*batch, heads]. Memory stays linear in length."""
        from headwise.masks.counting import tile_counts  # counting needs this class

        pairs = tile_counts(self, frame, 128, 128).sum((-2, -1))
        return pairs.expand(*frame.batch, frame.heads)

    def density(self, frame: Frame) -> Tensor:
        """The share of all q_len * k_len pairs that is allowed, float64 [*batch, heads] (0 where
        there is no pair)."""
        return self.count(frame).double() / max(frame.q_len * frame.k_len, 1)

    def to(self, device: torch.device | str) -> Self:
        """The same mask with its tensors on `device`."""
        moved: dict[str, Any] = {}
        for name, value in self._parts().items():
            if isinstance(value, Tensor | Mask):
                moved[name] = value.to(device)
        return dataclasses.replace(self, **moved) if moved else self

    def describe(self) -> str:
        """One line of plain words, e.g. "causal & window(before=127, after=0) & key lengths [3, 7]"."""
        return repr(self)

    def natural_lengths(self) -> tuple[int | None, int | None]:
        """The q_len and k_len that this mask's own data speaks of, None where it fits any: what a
        drawing takes when it is given no lengths."""
        return None, None

    def text(self, q_len: int | None = None, k_len: int | None = None, **options: Any) -> str:
        """A picture in characters; options as in `headwise.masks.draw`."""
        from headwise.masks.draw import draw  # drawing needs this class

        return draw(self, q_len, k_len, **options)

    def svg(self, q_len: int | None = None, k_len: int | None = None, **options: Any) -> str:
        """A picture as a self-contained SVG; options as in `headwise.masks.draw_svg`."""
        from headwise.masks.svg import draw_svg  # drawing needs this class

        return draw_svg(self, q_len, k_len, **options)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.svg()

    def _parts(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}

    def __repr__(self) -> str:
        parts = (f"{name}={_brief(value)}" for name, value in self._parts().items() if value is not None)
        return f"{type(self).__name__}({', '.join(parts)})"

    def __and__(self, other: Mask) -> Mask:
        return And(self, other) if isinstance(other, Mask) else _refuse(other, "&")

    def __or__(self, other: Mask) -> Mask:
        return Or(self, other) if isinstance(other, Mask) else _refuse(other, "|")

    def __rand__(self, other: object) -> Mask:
        return _refuse(other, "&")  # a mask on the left takes __and__

    def __ror__(self, other: object) -> Mask:
        return _refuse(other, "|")  # a mask on the left takes __or__

    def __invert__(self) -> Mask:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the mask {self.describe()} is neither true nor false: compose masks with &, | and ~ "
            "(not with `and`, `or`, `not`, which keep one of them in silence), and compare with `is None`"
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Pair(Mask):
    """Two masks joined by `sign`."""

    sign: ClassVar[str]

    left: Mask
    right: Mask

    def check(self, frame: Frame) -> None:
        self.left.check(frame)
        self.right.check(frame)

    def describe(self) -> str:
        return f" {self.sign} ".join(_words(part, inside=type(self)) for part in (self.left, self.right))

    def natural_lengths(self) -> tuple[int | None, int | None]:
        return _longer(self.left, self.right)

    def __repr__(self) -> str:
        return f" {self.sign} ".join(_code(part, inside=type(self)) for part in (self.left, self.right))


@dataclass(frozen=True, eq=False, repr=False)
class And(_Pair):
    """Both masks allow."""

    sign: ClassVar[str] = "&"

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return self.left.allow(q_pos, k_pos) & self.right.allow(q_pos, k_pos)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return self.left.block(frame, rows, cols) & self.right.block(frame, rows, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        left = self.left.tiles(frame, q_block, k_block)
        return torch.minimum(left, self.right.tiles(frame, q_block, k_block))


@dataclass(frozen=True, eq=False, repr=False)
class Or(_Pair):
    """At least one of the masks allows."""

    sign: ClassVar[str] = "|"

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return self.left.allow(q_pos, k_pos) | self.right.allow(q_pos, k_pos)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return self.left.block(frame, rows, cols) | self.right.block(frame, rows, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        left = self.left.tiles(frame, q_block, k_block)
        return torch.maximum(left, self.right.tiles(frame, q_block, k_block))


@dataclass(frozen=True, eq=False, repr=False)
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

    def describe(self) -> str:
        return f"not {_words(self.mask, inside=Not)}"

    def natural_lengths(self) -> tuple[int | None, int | None]:
        return self.mask.natural_lengths()

    def __repr__(self) -> str:
        return f"~{_code(self.mask, inside=Not)}"


def all_of(*masks: Mask | None) -> Mask | None:
    """The masks that are given, joined by `&`; None where all of them are None."""
    joined = None
    for mask in masks:
        if mask is not None:
            joined = mask if joined is None else joined & mask
    return joined


def tile_codes(some: Tensor, every: Tensor) -> Tensor:
    """`Tile` codes from two bool tensors: may any pair of the tile attend, and may every pair?
    (`every` must imply `some`.)"""
    return some.view(torch.int8) + every.view(torch.int8)


def _refuse(other: object, sign: str) -> NoReturn:
    if isinstance(other, Tensor):
        raise TypeError(
            f"`{sign}` joins masks, and one side is a {other.dtype} tensor of shape {list(other.shape)}: "
            "write Allow(tensor), where True means may attend"
        )
    raise TypeError(f"`{sign}` joins masks, and one side is a {type(other).__name__}: {other!r}")


def _words(mask: Mask, inside: type[Mask]) -> str:
    nested = isinstance(mask, _Pair) and not isinstance(mask, inside)
    return f"({mask.describe()})" if nested else mask.describe()


def _code(mask: Mask, inside: type[Mask]) -> str:
    nested = isinstance(mask, _Pair) and not isinstance(mask, inside)
    return f"({mask!r})" if nested else repr(mask)


def _longer(left: Mask, right: Mask) -> tuple[int | None, int | None]:
    (q_left, k_left), (q_right, k_right) = left.natural_lengths(), right.natural_lengths()
    q_known = [n for n in (q_left, q_right) if n is not None]
    k_known = [n for n in (k_left, k_right) if n is not None]
    return max(q_known, default=None), max(k_known, default=None)


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value)
