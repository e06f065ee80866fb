"""Frames, and the slow and obvious way to say what a mask allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from headwise.masks import Frame, Mask, Tile

BATCH, HEADS = (2,), 3

Rule = Callable[[int, int, int, int, int], bool]  # (batch entry, row, column, q_pos, k_pos)


def frames() -> Iterator[tuple[str, Frame]]:
    """Frames of prime sizes: both alignments, positions per batch entry, empty cache slots, a ring."""
    for q_len, k_len in ((7, 7), (5, 11), (13, 7), (1, 5), (0, 3), (3, 0)):
        for align in ("end", "start"):
            name = f"{q_len}x{k_len}-{align}"
            yield name, Frame.of(BATCH, HEADS, q_len, k_len, align=align)
    per_entry = torch.tensor([[0, 1, 2, 3, 4], [6, 7, 8, 9, 10]])
    yield "queries-per-entry", Frame.of(BATCH, HEADS, 5, 11, q_pos=per_entry)
    slots = torch.tensor([[0, 1, 2, -1, -1, -1, -1], [0, 1, 2, 3, 4, 5, -1]])
    yield "empty-slots", Frame.of(BATCH, HEADS, 2, 7, q_pos=torch.tensor([[1, 2], [4, 5]]), k_pos=slots)
    ring = torch.tensor([7, 8, 9, 10, 4, 5, 6])
    yield "ring", Frame.of(BATCH, HEADS, 3, 7, q_pos=torch.tensor([8, 9, 10]), k_pos=ring)
    shuffled = torch.tensor([9, 2, 5, 0, 7])
    yield "shuffled", Frame.of(BATCH, HEADS, 5, 11, q_pos=shuffled, k_pos=torch.arange(10, -1, -1))


FRAMES = dict(frames())


def by_hand(frame: Frame, rule: Rule) -> Tensor:
    """bool [2, q_len, k_len], found pair by pair."""
    q_pos = frame.q_pos.expand(2, frame.q_len).tolist()
    k_pos = frame.k_pos.expand(2, frame.k_len).tolist()
    out = torch.zeros(2, frame.q_len, frame.k_len, dtype=torch.bool)
    for b in range(2):
        for i in range(frame.q_len):
            for j in range(frame.k_len):
                out[b, i, j] = rule(b, i, j, q_pos[b][i], k_pos[b][j])
    return out


def true_tiles(dense: Tensor, q_block: int, k_block: int) -> Tensor:
    """The tile codes that a look at every pair gives, [..., q tiles, k tiles]."""
    q_len, k_len = dense.shape[-2:]
    rows = []
    for i in range(0, q_len, q_block):
        row = []
        for j in range(0, k_len, k_block):
            tile = dense[..., i : i + q_block, j : j + k_block].flatten(-2)
            row.append(tile.any(-1).long() + tile.all(-1).long())
        rows.append(torch.stack(row, -1) if row else dense.new_zeros((*dense.shape[:-2], 0)).long())
    if not rows:
        return torch.zeros(*dense.shape[:-2], 0, -(-k_len // k_block), dtype=torch.int64)
    return torch.stack(rows, -2)


def tiles_of(mask: Mask, frame: Frame, q_block: int, k_block: int) -> Tensor:
    """mask.tiles at its full shape."""
    tiles = mask.tiles(frame, q_block, k_block)
    assert tiles.dtype == torch.int8
    shape = (-(-frame.q_len // q_block), -(-frame.k_len // k_block))
    assert tiles.shape[-2:] == shape, "the last two dimensions are never left to broadcast"
    return tiles.expand(*frame.batch, frame.heads, *shape).long()


def assert_honest(mask: Mask, frame: Frame, q_block: int, k_block: int) -> None:
    """EMPTY and FULL are promises."""
    said = tiles_of(mask, frame, q_block, k_block)
    true = true_tiles(mask.dense(frame), q_block, k_block)
    sure = said != Tile.PARTIAL
    assert torch.equal(said[sure], true[sure]), f"{mask} at {q_block} x {k_block}\n{said}\n{true}"
