"""Descriptions, code forms, and masks of some entries of a batch."""

from __future__ import annotations

import pytest
import torch
from mask_by_hand import tiles_of

from headwise.masks import Allow, Causal, Documents, Frame, KeyLengths, Mask, Prefix, ValidKeys, Window

LENGTHS = torch.tensor([3, 7])


@pytest.mark.parametrize(
    ("mask", "words", "code"),
    [
        (
            Causal() & Window(127, 0) & KeyLengths(LENGTHS),
            "causal & window(before=127, after=0) & key lengths [3, 7]",
            "Causal() & Window(before=127, after=0) & KeyLengths(lengths=int64[2])",
        ),
        (
            (Causal() | Prefix(4)) & ~ValidKeys(),
            "(causal | prefix 4) & not valid keys",
            "(Causal() | Prefix(lengths=4)) & ~ValidKeys()",
        ),
        (~(Causal() & ValidKeys()), "not (causal & valid keys)", "~(Causal() & ValidKeys())"),
        (
            Documents(torch.zeros(2, 5, dtype=torch.int32)),
            "documents (ids of shape [2, 5])",
            "Documents(ids=int64[2, 5])",
        ),
        (
            Allow(torch.ones(1, 3, 5, 7).bool()),
            "allow (a tensor of shape [1, 3, 5, 7])",
            "Allow(tensor=bool[1, 3, 5, 7])",
        ),
        (
            KeyLengths(torch.arange(11)),
            "key lengths [0, 1, 2, 3, 4, 5, 6, 7, and 3 more]",
            "KeyLengths(lengths=int64[11])",
        ),
        (Window(None, 2), "window(before=None, after=2)", "Window(before=None, after=2)"),
        (
            KeyLengths(torch.tensor([1], device="meta")),
            "key lengths of shape [1]",
            "KeyLengths(lengths=int64[1])",
        ),
    ],
)
def test_words_and_code(mask: Mask, words: str, code: str) -> None:
    assert mask.describe() == words
    assert repr(mask) == code


def test_a_mask_of_ones_own_needs_only_two_methods() -> None:
    from dataclasses import dataclass

    from torch import Tensor

    @dataclass(frozen=True, eq=False, repr=False)
    class Even(Mask):
        step: int

        def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
            return k_pos % self.step == 0

        def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
            shape = (-(-frame.q_len // q_block), -(-frame.k_len // k_block))
            return torch.ones(shape, dtype=torch.int8)  # not looked at

    mask = Even(2) & Causal()
    frame = Frame.of((2,), 3, 4, 4)
    assert mask.describe() == "Even(step=2) & causal"
    assert mask.count(frame).unique().tolist() == [6]
    assert mask.select((2,), slice(0, 1)).dense(Frame.of((1,), 3, 4, 4)).shape == (1, 3, 4, 4)


@pytest.mark.parametrize("index", [slice(None), slice(1, 2), slice(3, 6), slice(0, 0)])
def test_some_entries_of_a_folded_batch(index: slice) -> None:
    generator = torch.Generator().manual_seed(7)
    batch = (2, 3)
    q_pos = torch.randint(0, 11, (1, 3, 5), generator=generator)
    frame = Frame.of(batch, 2, 5, 7, q_pos=q_pos)
    ids = torch.randint(-1, 3, (2, 1, 11), generator=generator)
    per_head = torch.rand(3, 2, 5, 7, generator=generator) < 0.5
    lengths = torch.randint(0, 8, batch, generator=generator)
    masks: list[Mask] = [
        Causal() & KeyLengths(lengths),
        Documents(ids) | Prefix(lengths[:1, :1]),
        ~Documents(ids[0, 0], torch.randint(0, 3, (3, 5), generator=generator)),
        Allow(per_head),
        Allow(per_head[0, 0]) | Allow(per_head[0]),
        Window(2, 2) & Prefix(3),
    ]
    for mask in masks:
        part, place = mask.select(batch, index), frame.select(index)
        expected = mask.dense(frame).flatten(0, 1)[index]
        assert torch.equal(part.dense(place), expected)
        assert torch.equal(tiles_of(part, place, 2, 3), tiles_of(mask, frame, 2, 3).flatten(0, 1)[index])


def test_which_masks_differ_by_batch() -> None:
    assert KeyLengths(LENGTHS).by_batch()
    assert (~(Causal() & KeyLengths(LENGTHS))).by_batch()
    assert Allow(torch.ones(2, 1, 5, 7).bool()).by_batch()
    for mask in (Causal(), KeyLengths(3), Documents(torch.arange(7)), Allow(torch.ones(3, 5, 7).bool())):
        assert not mask.by_batch()


def test_masks_work_in_a_compiled_graph() -> None:
    def count(x: torch.Tensor, lengths: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        frame = Frame.of((x.shape[0],), 1, x.shape[1], x.shape[1])
        mask = Causal() & KeyLengths(lengths) & (Window(3, 0) | Documents(ids))
        mask.check(frame)
        return mask.dense(frame).sum((-2, -1)) + mask.tiles(frame, 4, 4).sum((-2, -1))

    compiled = torch.compile(count, fullgraph=True, dynamic=True, backend="eager")
    for length in (5, 11, 13):
        inputs = torch.ones(2, length), torch.tensor([3, 5]), torch.arange(length) // 3
        assert torch.equal(compiled(*inputs), count(*inputs))


def test_masks_work_under_vmap() -> None:
    frame = Frame.of((), 1, 5, 7)

    def dense(length: torch.Tensor) -> torch.Tensor:
        return (Causal() & KeyLengths(length)).dense(frame)

    batched = torch.func.vmap(dense)(LENGTHS)
    assert torch.equal(batched, torch.stack([dense(n) for n in LENGTHS]))
