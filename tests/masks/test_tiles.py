"""Tiles of composed masks are honest, cheap in memory, and found without waiting for values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_by_hand import assert_honest, true_tiles
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headwise.masks import Allow, Causal, Documents, Frame, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.masks.counting import exact_tiles

AWKWARD = [0, 1, 2, 63, 64, 65, 127, 128, 129]
BATCH, HEADS = 2, 3


def random_bool(draw: st.DrawFn, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    share = draw(st.sampled_from([0.02, 0.5, 0.98]))
    return torch.rand(shape, generator=generator) < share


def positions(draw: st.DrawFn, length: int, default: Tensor, lowest: int) -> Tensor | None:
    """Default ones, or running on per entry, or any whatever."""
    kind = draw(st.sampled_from(["default", "shifted", "shuffled", "anything"]))
    if kind == "default":
        return None
    if kind == "shifted":
        shift = draw(st.integers(0, 40))
        return torch.stack([default, default + shift])
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    if kind == "shuffled":
        return default[torch.randperm(length, generator=generator)]
    return torch.randint(lowest, 150, (BATCH, length), generator=generator)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    q_len, k_len = draw(st.sampled_from(AWKWARD)), draw(st.sampled_from(AWKWARD))
    align = draw(st.sampled_from(["end", "start"]))
    plain = Frame.of((BATCH,), HEADS, q_len, k_len, align=align)
    q_pos = positions(draw, q_len, plain.q_pos, 0)
    k_pos = positions(draw, k_len, plain.k_pos, -1)
    return Frame.of((BATCH,), HEADS, q_len, k_len, align=align, q_pos=q_pos, k_pos=k_pos)


@st.composite
def kinds(draw: st.DrawFn, frame: Frame) -> Mask:
    kind = draw(st.sampled_from(["causal", "window", "lengths", "documents", "prefix", "allow", "valid"]))
    counts = st.none() | st.integers(0, 130)
    lengths = st.lists(st.integers(0, 130), min_size=BATCH, max_size=BATCH)
    match kind:
        case "causal":
            return Causal()
        case "window":
            return Window(draw(counts), draw(counts))
        case "lengths":
            return KeyLengths(torch.tensor(draw(lengths)))
        case "prefix":
            return Prefix(draw(st.integers(0, 130)) if draw(st.booleans()) else torch.tensor(draw(lengths)))
        case "valid":
            return ValidKeys()
        case "allow":
            shape = [n if draw(st.booleans()) else 1 for n in (BATCH, HEADS, frame.q_len, frame.k_len)]
            return Allow(random_bool(draw, *shape))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    most = draw(st.integers(1, 9))
    ids = torch.randint(-1, most, (BATCH, 200), generator=generator)[draw(st.sampled_from([0, slice(None)]))]
    ids = ids.sort(dim=-1).values if draw(st.booleans()) else ids
    cross = torch.randint(-1, most, (frame.q_len,), generator=generator) if draw(st.booleans()) else None
    return Documents(ids, cross)


@st.composite
def masks(draw: st.DrawFn, frame: Frame, depth: int = 3) -> Mask:
    join = draw(st.sampled_from(["kind", "&", "|", "~"])) if depth else "kind"
    if join == "kind":
        return draw(kinds(frame))
    left = draw(masks(frame, depth - 1))
    if join == "~":
        return ~left
    right = draw(masks(frame, depth - 1))
    return left & right if join == "&" else left | right


@given(st.data())
@settings(deadline=None, max_examples=250)
def test_empty_and_full_are_promises(data: st.DataObject) -> None:
    frame = data.draw(frames())
    mask = data.draw(masks(frame))
    q_block = data.draw(st.sampled_from([1, 7, 64, 128]))
    k_block = data.draw(st.sampled_from([1, 7, 64, 128]))
    if min(q_block, k_block) == 1 and frame.q_len * frame.k_len > 5000:
        q_block, k_block = 64, 7  # the loop over every pair's tile takes too long
    assert_honest(mask, frame, q_block, k_block)
    whole = mask.dense(frame)
    assert torch.equal(mask.count(frame), whole.sum((-2, -1)))
    exact = exact_tiles(mask, frame, q_block, k_block)
    exact = exact.expand(BATCH, HEADS, *exact.shape[-2:])
    assert torch.equal(exact.long(), true_tiles(whole, q_block, k_block))


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_a_block_is_a_part_of_the_whole(data: st.DataObject) -> None:
    frame = data.draw(frames().filter(lambda frame: frame.q_len > 0 and frame.k_len > 0))
    mask = data.draw(masks(frame))
    rows = torch.tensor(data.draw(st.lists(st.integers(0, frame.q_len - 1), max_size=5)), dtype=torch.int64)
    cols = torch.tensor(data.draw(st.lists(st.integers(0, frame.k_len - 1), max_size=5)), dtype=torch.int64)
    got = mask.block(frame, rows, cols).expand(BATCH, HEADS, len(rows), len(cols))
    assert torch.equal(got, mask.dense(frame)[:, :, rows][..., cols])


class Largest(TorchDispatchMode):
    """The largest tensor that any operation gives, and whether one hands a value to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self.waits: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if "local_scalar_dense" in str(func) or "nonzero" in str(func):
            self.waits.append(str(func))
        storages = [leaf.untyped_storage().nbytes() for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        self.size = max(self.size, *storages, 0)
        return out


LONG = 65_536
LONG_MASKS = {
    "causal": Causal(),
    "window": Window(127, 0),
    "lengths": KeyLengths(torch.tensor([LONG, 5])),
    "prefix": Prefix(torch.tensor([4096, 5])),
    "valid": ValidKeys(),
    "documents": Documents(torch.arange(LONG) // 1000),
    "unsorted documents": Documents(torch.arange(LONG).expand(2, -1) % 7),
    "query ids": Documents(torch.arange(LONG) // 1000, torch.arange(LONG) // 500),
    "key mask": Allow(torch.ones(2, 1, 1, LONG, dtype=torch.bool)),
}
LONG_MASKS["all"] = (Causal() & ~LONG_MASKS["window"] & LONG_MASKS["lengths"]) | LONG_MASKS["prefix"]


@pytest.mark.parametrize("own_positions", [False, True], ids=["default", "own positions"])
@pytest.mark.parametrize("name", LONG_MASKS)
def test_tiles_of_long_sequences_take_no_matrix(name: str, own_positions: bool) -> None:
    pos = torch.arange(LONG) if own_positions else None
    frame = Frame.of((2,), 3, LONG, LONG, q_pos=pos, k_pos=pos)
    seen = Largest()
    with seen:
        tiles = LONG_MASKS[name].tiles(frame, 128, 128)
    assert tiles.shape[-2:] == (512, 512)
    largest_allowed = 8 * max(2 * 512 * 512, 2 * LONG)  # bytes: an int64 per tile or per position
    assert 0 < seen.size <= largest_allowed
    assert seen.waits == []


def test_check_of_default_positions_reads_no_value() -> None:
    """On an accelerator each read would wait for all work before it."""
    frame = Frame.of((2,), 3, 7, 11)
    mask = Causal() & Window(3, 0) & KeyLengths(torch.tensor([3, 11])) & Documents(torch.arange(11)) | Prefix(
        2
    )
    seen = Largest()
    with seen:
        mask.check(frame)
        mask.tiles(frame, 2, 2)
        mask.block(frame, slice(0, 2), slice(0, 3))
    assert seen.waits == []


def test_counting_a_long_window_takes_no_matrix() -> None:
    frame = Frame.of((), 1, LONG, LONG)
    seen = Largest()
    with seen:
        count = Window(127, 0).count(frame)
    assert count.tolist() == [128 * LONG - 128 * 127 // 2]
    assert seen.size <= 8 * 512 * 512


def test_density() -> None:
    frame = Frame.of((2,), 1, 4, 4)
    assert Causal().density(frame).tolist() == [[10 / 16], [10 / 16]]
    assert Causal().density(Frame.of((), 1, 0, 3)).tolist() == [0.0]
