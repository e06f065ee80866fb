"""What a mask's partial tiles hold, found a few rows at a time and never as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from headwise.masks.base import Mask, Tile
from headwise.masks.frame import Frame

ROWS, COLS = 128, 8192  # the largest rectangle looked at in one go


def tile_counts(mask: Mask, frame: Frame, q_block: int, k_block: int) -> Tensor:
    """Allowed pairs in each rectangle of q_block queries and k_block keys.

    EMPTY and FULL rectangles are taken at the word of `mask.tiles`, PARTIAL ones are looked at.

    Returns: int64, broadcastable to [*batch, heads, ceil(q_len/q_block), ceil(k_len/k_block)].
    """
    tiles = _expanded(mask, frame, q_block, k_block)
    rows_in = _sizes(frame.q_len, q_block, frame.device)
    cols_in = _sizes(frame.k_len, k_block, frame.device)
    counts = (tiles == Tile.FULL) * (rows_in[:, None] * cols_in)  # [*lead, q_tiles, k_tiles]
    for look in _looks(mask, frame, tiles, q_block, k_block, until_mixed=False):
        counts[..., look.row, :] = torch.where(look.unsure, look.allowed, counts[..., look.row, :])
    return counts


def exact_tiles(mask: Mask, frame: Frame, q_block: int, k_block: int) -> Tensor:
    """`mask.tiles` with every PARTIAL tile looked at, until an allowed and a forbidden pair are found:
    PARTIAL then means mixed.

    Returns: int8 `Tile` codes, of the shape of `tile_counts`.
    """
    tiles = _expanded(mask, frame, q_block, k_block)
    exact = tiles.clone()
    for look in _looks(mask, frame, tiles, q_block, k_block, until_mixed=True):
        codes = (look.allowed > 0).to(torch.int8) + (look.allowed == look.seen)
        exact[..., look.row, :] = torch.where(look.unsure, codes, exact[..., look.row, :])
    return exact


@dataclass
class _Look:
    """What was seen of one row of tiles.

    Shapes: unsure, allowed [*lead, k_tiles]; seen [k_tiles].
    """

    row: int
    unsure: Tensor  # tiles that `mask.tiles` calls PARTIAL
    allowed: Tensor  # allowed pairs among those seen
    seen: Tensor  # pairs looked at


def _looks(
    mask: Mask, frame: Frame, tiles: Tensor, q_block: int, k_block: int, *, until_mixed: bool
) -> Iterator[_Look]:
    *lead, q_tiles, k_tiles = tiles.shape
    columns = torch.arange(frame.k_len, device=frame.device)
    cols_in = _sizes(frame.k_len, k_block, frame.device)
    for i in range(q_tiles):
        unsure = tiles[..., i, :] == Tile.PARTIAL
        allowed = torch.zeros(*lead, k_tiles, dtype=torch.int64, device=frame.device)
        look = _Look(i, unsure, allowed, torch.zeros_like(cols_in))
        unsettled = unsure.reshape(prod(lead), k_tiles).any(0)
        if not unsettled.any():
            continue
        first, last = i * q_block, min((i + 1) * q_block, frame.q_len)
        height = 8 if until_mixed else ROWS  # mixed tiles mostly show it at once
        while first < last and unsettled.any():
            rows = slice(first, min(first + height, last))
            for cols in columns[unsettled.repeat_interleave(k_block)[: frame.k_len]].split(COLS):
                block = mask.block(frame, rows, cols).expand(*lead, rows.stop - rows.start, len(cols))
                look.allowed.index_add_(-1, cols // k_block, block.sum(-2))
            look.seen += unsettled * cols_in * (rows.stop - rows.start)
            if until_mixed:
                settled = ~unsure | ((look.allowed > 0) & (look.allowed < look.seen))
                unsettled &= ~settled.reshape(prod(lead), k_tiles).all(0)
            first, height = rows.stop, min(2 * height, ROWS)
        yield look


def _expanded(mask: Mask, frame: Frame, q_block: int, k_block: int) -> Tensor:
    """mask.tiles with every leading dimension that its blocks may have."""
    tiles = mask.tiles(frame, q_block, k_block)
    sample = mask.block(frame, slice(0, 1), slice(0, 1))
    # not torch.broadcast_shapes, whose first call imports torch's symbolic algebra: seconds
    lead = torch.broadcast_tensors(tiles[..., :1, :1], sample)[0].shape[:-2]
    return tiles.expand(*lead, -(-frame.q_len // q_block), -(-frame.k_len // k_block))


def _sizes(length: int, block: int, device: torch.device) -> Tensor:
    """How many of `length` places each block holds, int64 [ceil(length / block)]."""
    starts = torch.arange(0, length, block, device=device)
    return (length - starts).clamp(max=block)
