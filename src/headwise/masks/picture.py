"""What a drawing of a mask shows, before anyone decides how: a small grid with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from torch import Tensor

from headwise.masks.base import Mask, Tile
from headwise.masks.counting import exact_tiles
from headwise.masks.frame import Align, Frame

TOY = 12  # lengths of a drawing that is given none


@dataclass(frozen=True)
class Picture:
    """A grid of cells, queries down and keys across.

    `cells[i][j]` is how much the i-th group of queries may see of the j-th group of keys: nothing
    (EMPTY), some of it (PARTIAL) or all (FULL). `words` says what each kind of cell means, and `note`
    what a reader must know besides (pooling, which entry).
    """

    title: str
    cells: tuple[tuple[Tile, ...], ...]
    q_labels: tuple[str, ...]
    k_labels: tuple[str, ...]
    words: dict[Tile, str]
    note: str

    def used(self) -> list[Tile]:
        """The kinds of cell that a legend must explain, fullest first."""
        present = {cell for row in self.cells for cell in row}
        return [cell for cell in sorted(Tile, reverse=True) if cell in present or cell != Tile.PARTIAL]


def picture(
    mask: Mask,
    q_len: int | None = None,
    k_len: int | None = None,
    *,
    align: Align = "end",
    frame: Frame | None = None,
    entry: int | tuple[int, ...] = 0,
    head: int = 0,
    q_tokens: Sequence[str] | None = None,
    k_tokens: Sequence[str] | None = None,
    tile: int | tuple[int, int] | None = None,
    cells: int = 48,
) -> Picture:
    """Look at one batch entry and one head of a mask.

    Args:
        q_len, k_len: lengths; by default those of the tokens or of the mask's own data, else 12.
        align: how queries stand to keys, as in `attention`.
        frame: sizes and positions, instead of lengths and `align` (cache slots, say).
        entry, head: which batch entry and head, where they differ.
        q_tokens, k_tokens: labels; with equal lengths, `q_tokens` alone labels both.
        tile: draw what `mask.tiles` says of blocks of this size (one int, or (q_block, k_block)).
        cells: the most cells along a side. Longer sequences are pooled: a cell then stands for several
            queries and keys, and shows whether none, some or all of their pairs are allowed.

    Raises:
        ValueError: tokens, entry or head don't fit; more tiles than `cells`; or the mask doesn't fit.
    """
    if cells < 1:
        raise ValueError(f"cells={cells}: a drawing has at least one cell along a side")
    if frame is None:
        q_len, k_len = _lengths(mask, q_len, k_len, q_tokens, k_tokens)
        frame = Frame.of((), 1, q_len, k_len, align=align)
    elif q_len is not None or k_len is not None:
        raise ValueError(f"give frame= or lengths, not both: got q_len={q_len} and k_len={k_len}")
    frame = _with_batch_of(mask, frame)
    mask.check(frame)

    if tile is None:
        q_block, k_block = (max(1, -(-n // cells)) for n in (frame.q_len, frame.k_len))
        codes = exact_tiles(mask, frame, q_block, k_block)
        words = {Tile.FULL: "may attend", Tile.PARTIAL: "some of its pairs may attend", Tile.EMPTY: "may not"}
        notes = []
        if q_block > 1 or k_block > 1:
            words |= {Tile.FULL: "all of its pairs may attend", Tile.EMPTY: "none of them"}
            notes.append(
                f"pooled: a cell is {q_block} x {k_block} pairs (queries x keys), labelled with its first"
            )
    else:
        q_block, k_block = (tile, tile) if isinstance(tile, int) else tile
        if q_block < 1 or k_block < 1:
            raise ValueError(f"tile={tile}: a tile holds at least one query and one key")
        tiles_down, tiles_across = -(-frame.q_len // q_block), -(-frame.k_len // k_block)
        if max(tiles_down, tiles_across) > cells:
            raise ValueError(
                f"tile={tile} cuts {frame.q_len} x {frame.k_len} pairs into {tiles_down} x {tiles_across} "
                f"tiles, more than cells={cells} along a side: draw larger tiles or allow more cells"
            )
        codes = mask.tiles(frame, q_block, k_block)
        words = {Tile.FULL: "full tile", Tile.PARTIAL: "partial tile", Tile.EMPTY: "empty tile"}
        notes = [f"a tile is {q_block} x {k_block} pairs (queries x keys), labelled with its first"]

    entry = (entry,) if isinstance(entry, int) else tuple(entry)
    grid = [[Tile(code) for code in line] for line in _one(codes, frame, entry, head)]
    notes += _which(frame, entry, head)
    if k_tokens is None and q_tokens is not None and frame.q_len == frame.k_len:
        k_tokens = q_tokens
    return Picture(
        title=f"{mask.describe()}: {frame.q_len} queries x {frame.k_len} keys",
        cells=tuple(tuple(line) for line in grid),
        q_labels=_labels("q_tokens", q_tokens, _positions(frame, entry, "q"), q_block),
        k_labels=_labels("k_tokens", k_tokens, _positions(frame, entry, "k"), k_block),
        words=words,
        note="; ".join(notes),
    )


def _lengths(
    mask: Mask,
    q_len: int | None,
    k_len: int | None,
    q_tokens: Sequence[str] | None,
    k_tokens: Sequence[str] | None,
) -> tuple[int, int]:
    """Said outright; by the tokens; by the mask's own data; like the other side; or a toy's."""
    q_own, k_own = mask.natural_lengths()
    q_len = q_len if q_len is not None else None if q_tokens is None else len(q_tokens)
    k_len = k_len if k_len is not None else None if k_tokens is None else len(k_tokens)
    if q_len is None:
        q_len = next((n for n in (q_own, k_len, k_own) if n is not None), TOY)
    if k_len is None:
        k_len = k_own if k_own is not None and q_len == q_own else max(q_len, k_own or 0)
    for name, length in (("q_len", q_len), ("k_len", k_len)):
        if length < 0:
            raise ValueError(f"{name}={length}: a length is 0 or more")
    return q_len, k_len


def _with_batch_of(mask: Mask, frame: Frame) -> Frame:
    """The frame with the batch dimensions and heads that the mask's own tensors have."""
    if frame.batch:
        return frame
    shape = mask.block(frame, slice(0, 1), slice(0, 1)).shape
    *batch, heads, _, _ = (*(1,) * (3 - len(shape)), *shape)
    return frame.sized(tuple(batch), max(heads, frame.heads))


def _one(values: Tensor, frame: Frame, entry: tuple[int, ...], head: int) -> list[list[int]]:
    """The values [q, k] of one batch entry and head."""
    wanted = (*_entry(frame, entry), head)
    whole = values.expand(*frame.batch, frame.heads, *values.shape[-2:])
    for name, place, size in zip(
        (*("entry",) * len(frame.batch), "head"), wanted, whole.shape[:-2], strict=True
    ):
        if not 0 <= place < size:
            raise ValueError(f"{name}={place}: the mask has {size} of them, counted from 0")
    lines: list[list[int]] = whole[wanted].tolist()
    return lines


def _entry(frame: Frame, entry: tuple[int, ...]) -> tuple[int, ...]:
    if not frame.batch:
        entry = () if entry == (0,) else entry
    elif entry == (0,):
        entry = (0,) * len(frame.batch)
    if len(entry) != len(frame.batch):
        raise ValueError(f"entry={entry} must name a place in the batch dimensions {list(frame.batch)}")
    return entry


def _which(frame: Frame, entry: tuple[int, ...], head: int) -> list[str]:
    notes = []
    if prod(frame.batch) > 1:
        place = ", ".join(str(i) for i in _entry(frame, entry))
        sizes = " x ".join(str(n) for n in frame.batch)
        notes.append(f"batch entry {place} of {sizes}")
    if frame.heads > 1:
        notes.append(f"head {head} of {frame.heads}")
    return notes


def _positions(frame: Frame, entry: tuple[int, ...], side: str) -> list[int]:
    pos = frame.q_pos if side == "q" else frame.k_pos
    if pos.ndim > 1:
        pos = pos.expand(*frame.batch, pos.shape[-1])[_entry(frame, entry)]
    places: list[int] = pos.tolist()
    return places


def _labels(name: str, tokens: Sequence[str] | None, positions: list[int], block: int) -> tuple[str, ...]:
    if tokens is None:
        return tuple(str(place) for place in positions[::block])
    if len(tokens) != len(positions):
        raise ValueError(f"{name} has {len(tokens)} tokens for {len(positions)} places: give one for each")
    return tuple(tokens[::block])
