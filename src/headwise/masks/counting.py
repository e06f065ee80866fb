"""How many pairs a mask allows, counted without building the matrix."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from headwise.masks.base import Mask, Tile
from headwise.masks.frame import Frame

ROWS, COLS = 128, 8192  # the largest rectangle looked at in one go


def tile_counts(mask: Mask, frame: Frame, q_block: int, k_block: int) -> Tensor:
    """Allowed pairs in each rectangle of q_block queries and k_block keys.

    EMPTY and FULL rectangles are taken at the word of `mask.tiles`; only PARTIAL ones are looked at,
    a few rows at a time.

    Returns: int64, broadcastable to [*batch, heads, ceil(q_len/q_block), ceil(k_len/k_block)].
    """
    device = frame.device
    q_tiles, k_tiles = -(-frame.q_len // q_block), -(-frame.k_len // k_block)
    tiles = mask.tiles(frame, q_block, k_block)
    sample = mask.block(frame, slice(0, 1), slice(0, 1))
    lead = torch.broadcast_shapes(tiles.shape[:-2], sample.shape[:-2])
    tiles = tiles.expand(*lead, q_tiles, k_tiles)

    rows_in = torch.full((q_tiles,), q_block, device=device)
    cols_in = torch.full((k_tiles,), k_block, device=device)
    rows_in[-1:] -= q_tiles * q_block - frame.q_len
    cols_in[-1:] -= k_tiles * k_block - frame.k_len
    counts = (tiles == Tile.FULL) * (rows_in[:, None] * cols_in)  # [*lead, q_tiles, k_tiles]

    columns = torch.arange(frame.k_len, device=device)
    for i in range(q_tiles):
        unsure = (tiles[..., i, :] == Tile.PARTIAL).reshape(prod(lead), k_tiles).any(0)
        looked_at = columns[unsure.repeat_interleave(k_block)[: frame.k_len]]
        if not looked_at.numel():
            continue
        found = torch.zeros(*lead, k_tiles, dtype=torch.int64, device=device)
        last = min((i + 1) * q_block, frame.q_len)
        for first in range(i * q_block, last, ROWS):
            rows = slice(first, min(first + ROWS, last))
            for cols in looked_at.split(COLS):
                block = mask.block(frame, rows, cols)
                block = block.expand(*lead, rows.stop - rows.start, len(cols))
                found.index_add_(-1, cols // k_block, block.sum(-2))
        counts[..., i, :] = torch.where(unsure, found, counts[..., i, :])
    return counts
