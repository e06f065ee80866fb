"""Does a mask keep what it promises?"""

from __future__ import annotations

import dataclasses
from math import prod

import torch
from torch import Tensor

from headwise.masks.base import Mask, Tile
from headwise.masks.frame import Frame, Index

BLOCKS = ((3, 4), (1, 1), (7, 5), (64, 128))


def check_mask(mask: Mask, frame: Frame | None = None) -> None:
    """Raise unless a mask is one: what it says block by block is what it says as a whole, and what it says of
    tiles is true. For masks of your own, in their tests.

    Args:
        frame: the call to try it in. Default: several, of small unequal lengths, aligned at the end, at the
            start, and with positions in no order; for a mask whose own data speaks of lengths or a batch, of
            these.

    Raises:
        TypeError: `allow` returns no bool tensor; fields that aren't the dataclass's, or tensors that aren't
            named in `trailing`.
        ValueError: a shape that doesn't fit, a block that differs from the whole, an EMPTY or FULL tile that
            isn't, a selection of the batch that differs. The message names the place.
    """
    if not isinstance(mask, Mask):
        raise TypeError(f"mask is a {type(mask).__name__}: expected a Mask")
    _check_fields(mask)
    for one in (frame,) if frame is not None else _frames(mask):
        mask.check(one)
        dense = _whole(mask, one)
        _check_blocks(mask, one, dense)
        for q_block, k_block in BLOCKS:
            _check_tiles(mask, one, dense, q_block, k_block)
        _check_batch(mask, one, dense)


def _frames(mask: Mask) -> tuple[Frame, ...]:
    q_len, k_len = mask.natural_lengths()
    sizes = (23, 29) if q_len is None and k_len is None else (q_len or 23, k_len or 29)
    batch = _batch(mask) or (2,)
    shuffled = torch.randperm(sizes[1], generator=torch.Generator().manual_seed(0))
    return (
        Frame.of(batch, 3, *sizes),
        Frame.of(batch, 3, *sizes, align="start"),
        Frame.of(batch, 3, *sizes, k_pos=shuffled),
        Frame.of(batch, 3, *sizes, k_pos=_differing(shuffled, batch)),
    )


def _batch(mask: Mask) -> tuple[int, ...]:
    """The batch dimensions of the mask's tensors."""
    shapes: list[tuple[int, ...]] = [()]
    for name, value in mask._parts().items():
        if isinstance(value, Mask):
            shapes.append(_batch(value))
        elif isinstance(value, Tensor):
            shapes.append(tuple(value.shape[: max(value.ndim - mask.trailing[name], 0)]))
    return tuple(torch.broadcast_shapes(*shapes))


def _differing(positions: Tensor, batch: tuple[int, ...]) -> Tensor:
    """[*batch, n]: the positions, rolled by one more in each entry."""
    rolled = [positions.roll(entry) for entry in range(prod(batch))]
    return torch.stack(rolled).reshape(*batch, -1) if rolled else positions.new_zeros(*batch, len(positions))


def _check_fields(mask: Mask) -> None:
    name, parts = type(mask).__name__, mask._parts()
    loose = [known for known in vars(mask) if known not in {f.name for f in dataclasses.fields(mask)}]
    if loose:
        raise TypeError(
            f"{name} holds {', '.join(loose)}, which are no fields of a dataclass: write "
            "@dataclass(frozen=True, eq=False, repr=False) above the class"
        )
    untold = [k for k, value in parts.items() if isinstance(value, Tensor) and k not in mask.trailing]
    if untold:
        raise TypeError(
            f"{name} holds tensors that `trailing` doesn't name: {', '.join(untold)}; say how many "
            "dimensions follow the batch in each"
        )


def _whole(mask: Mask, frame: Frame) -> Tensor:
    full = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
    block = mask.block(frame, slice(None), slice(None))
    if not isinstance(block, Tensor) or block.dtype != torch.bool:
        got = block.dtype if isinstance(block, Tensor) else type(block).__name__
        raise TypeError(f"{type(mask).__name__}.block returned {got}: expected a bool tensor")
    try:
        return block.expand(full)
    except RuntimeError:
        raise ValueError(
            f"{type(mask).__name__} has shape {list(block.shape)}, which doesn't broadcast to "
            f"[*batch, heads, q_len, k_len] = {list(full)}"
        ) from None


def _check_blocks(mask: Mask, frame: Frame, dense: Tensor) -> None:
    q_len, k_len = frame.q_len, frame.k_len
    rectangles: list[tuple[Index, Index]] = [
        (slice(i, i + 1), slice(0, k_len // 2)) for i in (0, q_len // 2, max(q_len - 1, 0))
    ]
    every_second, backwards = torch.arange(0, k_len, 2), torch.arange(q_len - 1, -1, -1)
    rectangles += [(slice(q_len // 3, None), every_second), (backwards, slice(k_len // 2, None))]
    for rows, cols in rectangles:
        want = dense[..., rows, :][..., cols]
        if not torch.equal(mask.block(frame, rows, cols).expand_as(want), want):
            raise ValueError(
                f"{type(mask).__name__}.block(rows={rows}, cols={cols}) differs from the same rows and "
                "columns of the whole: a block may look at nothing but its own positions"
            )


def _check_tiles(mask: Mask, frame: Frame, dense: Tensor, q_block: int, k_block: int) -> None:
    tiles = mask.tiles(frame, q_block, k_block)
    size = (-(-frame.q_len // q_block), -(-frame.k_len // k_block))
    asked = f"{type(mask).__name__}.tiles(frame, {q_block}, {k_block})"
    if tiles.dtype != torch.int8 or tuple(tiles.shape[-2:]) != size:
        raise ValueError(
            f"{asked} is {tiles.dtype} {list(tiles.shape)}: expected int8 [..., {size[0]}, {size[1]}]"
        )
    tiles = tiles.expand(*dense.shape[:-2], *size)
    for i in range(size[0]):
        for j in range(size[1]):
            block = dense[..., i * q_block : (i + 1) * q_block, j * k_block : (j + 1) * k_block].flatten(-2)
            code = tiles[..., i, j]
            wrong = torch.where(code == Tile.FULL, ~block.all(-1), (code == Tile.EMPTY) & block.any(-1))
            if bool(wrong.any()):
                said = Tile(int(code[wrong][0])).name
                last_row, last_key = (
                    min((i + 1) * q_block, frame.q_len) - 1,
                    min((j + 1) * k_block, frame.k_len) - 1,
                )
                raise ValueError(
                    f"{asked} says {said} of rows {i * q_block} to {last_row} and keys {j * k_block} to "
                    f"{last_key}, and allow says otherwise: EMPTY and FULL are promises, and PARTIAL is "
                    "always allowed"
                )


def _check_batch(mask: Mask, frame: Frame, dense: Tensor) -> None:
    entries = dense.reshape(prod(frame.batch), *dense.shape[-3:])
    by_batch = mask.by_batch() or frame.q_pos.ndim > 1 or frame.k_pos.ndim > 1
    for index in range(len(entries)):
        if not by_batch and not torch.equal(entries[index], entries[0]):
            raise ValueError(
                f"{type(mask).__name__}.by_batch() is False, and batch entry {index} differs from the first"
            )
    for index in range(len(entries)):
        one = slice(index, index + 1)
        selected = _whole(mask.select(frame.batch, one), frame.select(one))
        if not torch.equal(selected[0], entries[index]):
            raise ValueError(
                f"{type(mask).__name__}.select gives batch entry {index} another mask than it has in the "
                "whole: `trailing` must say how many dimensions follow the batch in each tensor"
            )
