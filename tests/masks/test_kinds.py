"""Every kind of mask against a plain loop over all pairs."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from mask_by_hand import BATCH, FRAMES, HEADS, Rule, assert_honest, by_hand, tiles_of, true_tiles
from torch import Tensor

from headwise.masks import Allow, Causal, Documents, Frame, KeyLengths, Mask, Prefix, ValidKeys, Window

LENGTHS = torch.tensor([3, 5])
IDS = torch.tensor([0, 0, 0, 1, 1, 3, 3, -1, 3, 4, 4])
SORTED = torch.tensor([0, 0, 1, 1, 1, 1, 255, 255, 255, 255, 255])
IDS_PER_ENTRY = torch.stack([IDS, torch.tensor([5, -1, -1, 2, 2, 5, 2, 2, 5, 0, 0])])


def id_at(ids: Tensor, entry: int, pos: int) -> int:
    row = ids if ids.ndim == 1 else ids[entry]
    return int(row[pos]) if 0 <= pos < len(row) else -1


def same_document(ids: Tensor) -> Rule:
    return lambda b, i, j, q, k: id_at(ids, b, q) == id_at(ids, b, k) >= 0


KINDS: dict[str, tuple[Mask, Rule]] = {
    "causal": (Causal(), lambda b, i, j, q, k: k <= q),
    "window-2-0": (Window(2, 0), lambda b, i, j, q, k: k in (q - 2, q - 1, q)),
    "window-0-0": (Window(0, 0), lambda b, i, j, q, k: k == q),
    "window-1-3": (Window(1, 3), lambda b, i, j, q, k: q - 1 <= k <= q + 3),
    "window-open-before": (Window(None, 1), lambda b, i, j, q, k: k <= q + 1),
    "window-open-after": (Window(1, None), lambda b, i, j, q, k: k >= q - 1),
    "window-open": (Window(None, None), lambda b, i, j, q, k: True),
    "valid-keys": (ValidKeys(), lambda b, i, j, q, k: k >= 0),
    "key-length": (KeyLengths(3), lambda b, i, j, q, k: k < 3),
    "key-lengths": (KeyLengths(LENGTHS), lambda b, i, j, q, k: k < (3, 5)[b]),
    "key-lengths-0": (KeyLengths(torch.tensor([0, 2])), lambda b, i, j, q, k: k < (0, 2)[b]),
    "prefix": (Prefix(LENGTHS), lambda b, i, j, q, k: k < (3, 5)[b]),
    "documents": (Documents(IDS), same_document(IDS)),
    "documents-per-entry": (Documents(IDS_PER_ENTRY), same_document(IDS_PER_ENTRY)),
    "documents-uint8": (Documents(SORTED.to(torch.uint8)), same_document(SORTED)),
    "no-documents": (Documents(torch.zeros(0, dtype=torch.int64)), lambda b, i, j, q, k: False),
    "and": (Causal() & Window(None, 0) & KeyLengths(LENGTHS), lambda b, i, j, q, k: k <= q and k < (3, 5)[b]),
    "prefix-lm": (Causal() | Prefix(2), lambda b, i, j, q, k: k <= q or k < 2),
    "strictly-causal": (Causal() & ~Window(0, 0), lambda b, i, j, q, k: k < q),
}

BLOCKS = list(product((1, 2, 3, 16), (1, 2, 5, 16)))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_a_loop_over_all_pairs(kind: str, frame: Frame) -> None:
    mask, rule = KINDS[kind]
    expected = by_hand(frame, rule)
    dense = mask.dense(frame)
    assert dense.dtype == torch.bool
    assert dense.shape == (*BATCH, HEADS, frame.q_len, frame.k_len)
    assert torch.equal(dense, expected[:, None].expand_as(dense))
    assert torch.equal(mask.count(frame), expected.sum((-2, -1))[:, None].expand(*BATCH, HEADS))
    for q_block, k_block in BLOCKS:
        assert_honest(mask, frame, q_block, k_block)


# Documents are exact where ids are sorted (padding may stand anywhere); the others always are where
# positions run on without gaps. A composed mask may say PARTIAL where it needn't.
EXACT = [kind for kind in KINDS if kind not in ("documents-per-entry", "strictly-causal")]
RUNNING_ON = [name for name in FRAMES if "x" in name]


@pytest.mark.parametrize("name", RUNNING_ON)
@pytest.mark.parametrize("kind", EXACT)
def test_partial_means_mixed_where_positions_run_on(kind: str, name: str) -> None:
    mask, _ = KINDS[kind]
    frame = FRAMES[name]
    for q_block, k_block in BLOCKS:
        said = tiles_of(mask, frame, q_block, k_block)
        assert torch.equal(said, true_tiles(mask.dense(frame), q_block, k_block)), (q_block, k_block)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_by_slice_and_by_index(kind: str, frame: Frame) -> None:
    mask, _ = KINDS[kind]
    dense = mask.dense(frame)
    rows = torch.arange(frame.q_len - 1, -1, -2)
    cols = torch.arange(0, frame.k_len, 2)
    for r, c in product((rows, slice(1, 4), slice(None)), (cols, slice(1, 4), slice(None))):
        expected = dense[..., r, :][..., c]
        assert torch.equal(mask.block(frame, r, c).expand_as(expected), expected)


@pytest.mark.parametrize(
    "shape",
    [(), (11,), (1, 11), (5, 1), (5, 11), (3, 5, 11), (3, 1, 11), (2, 1, 5, 11), (2, 3, 5, 11), (2, 3, 5, 1)],
)
def test_allow_of_every_shape(shape: tuple[int, ...]) -> None:
    tensor = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.7
    frame = Frame.of((2,), 3, 5, 11)
    mask = Allow(tensor)
    mask.check(frame)
    dense = mask.dense(frame)
    assert torch.equal(dense, tensor.expand(2, 3, 5, 11))
    rows, cols = torch.tensor([4, 0, 2]), torch.tensor([10, 3])
    assert torch.equal(mask.block(frame, rows, cols).expand(2, 3, 3, 2), dense[..., rows, :][..., cols])
    for q_block, k_block in BLOCKS:
        said = tiles_of(mask, frame, q_block, k_block)
        assert torch.equal(said, true_tiles(dense, q_block, k_block))


def test_allow_knows_rows_not_positions() -> None:
    tensor = torch.rand(5, 11, generator=torch.Generator().manual_seed(3)) < 0.5
    frame = FRAMES["shuffled"]
    assert torch.equal(Allow(tensor).dense(frame)[1, 2], tensor)
    with pytest.raises(TypeError, match="rows and columns, not of positions"):
        Allow(tensor).allow(frame.q(slice(None)), frame.k(slice(None)))


def test_from_ignored_is_the_other_polarity() -> None:
    ignored = torch.tensor([[False, True, False], [True, True, False]])
    frame = Frame.of((), 1, 2, 3)
    assert torch.equal(Allow.from_ignored(ignored).dense(frame)[0], ~ignored)


@pytest.mark.parametrize("batched", [False, True])
def test_documents_with_query_ids(batched: bool) -> None:
    ids = torch.tensor([0, 0, 1, 1, 1, -1, 2])
    query_ids = torch.tensor([2, 0, -1, 0, 1])
    if batched:
        query_ids = torch.stack([query_ids, query_ids.flip(0)])
    frame = Frame.of((2,), 3, 5, 7)
    mask = Documents(ids, query_ids)
    mask.check(frame)

    def rule(b: int, i: int, j: int, q: int, k: int) -> bool:
        return id_at(query_ids, b, i) == int(ids[j]) >= 0

    dense = mask.dense(frame)
    assert torch.equal(dense, by_hand(frame, rule)[:, None].expand_as(dense))
    rows, cols = torch.tensor([3, 0]), torch.tensor([6, 1, 2])
    assert torch.equal(mask.block(frame, rows, cols).expand(2, 3, 2, 3), dense[..., rows, :][..., cols])
    for q_block, k_block in BLOCKS:
        assert_honest(mask, frame, q_block, k_block)
    with pytest.raises(TypeError, match=r"use block\(frame"):
        mask.allow(frame.q(rows), frame.k(cols))


def test_documents_from_lengths_and_from_cu_seqlens() -> None:
    expected = [0, 0, 2, 2, 2, 3]
    assert Documents.from_lengths(torch.tensor([2, 0, 3, 1])).ids.tolist() == expected
    assert (
        Documents.from_cu_seqlens(torch.tensor([0, 2, 2, 5, 6], dtype=torch.int32)).ids.tolist() == expected
    )


def test_one_query_over_eight_cached_keys_sees_them_all() -> None:
    """pytorch#108108: with top-left alignment it would see the first alone."""
    assert Causal().dense(Frame.of((), 1, 1, 8)).all()
    assert Causal().dense(Frame.of((), 1, 1, 8, align="start")).sum() == 1


def test_more_queries_than_keys_leave_the_first_rows_empty() -> None:
    """mlx PR#2967: five queries over two keys, aligned at the end."""
    assert Causal().dense(Frame.of((), 1, 5, 2))[0].long().tolist() == [
        [0, 0],
        [0, 0],
        [0, 0],
        [1, 0],
        [1, 1],
    ]
