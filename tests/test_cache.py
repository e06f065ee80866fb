"""Caches: any chunking equals the whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cached_layers import BEFORE, D_K, D_V, KINDS, WIDTH, S, inputs, layer, make, mask_of
from headwise.cache import RingCache, StaticCache
from headwise.masks import Causal, Window


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.sets(st.integers(1, S - 1)),
    kind=st.sampled_from(KINDS),
    rotary=st.booleans(),
    alibi=st.booleans(),
    kv_heads=st.sampled_from([1, 2, 4]),
    window=st.booleans(),
)
def test_any_chunking_equals_the_whole(
    cuts: set[int], kind: str, rotary: bool, alibi: bool, kv_heads: int, window: bool
) -> None:
    module, x, mask = layer(kv_heads=kv_heads, rotary=rotary, alibi=alibi), inputs(), mask_of(kind, window)
    ends = [*sorted(cuts), S]
    with torch.no_grad():
        whole = module(x, mask=mask)
        cache, parts = make(kind, kv_heads=kv_heads), []
        for first, last in zip([0, *ends], ends, strict=False):
            parts.append(module(x[:, first:last], mask=mask, cache=cache))
            assert cache.lengths.tolist() == [last, last]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    chunks=st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=5),
    kind=st.sampled_from(KINDS),
    rotary=st.booleans(),
    alibi=st.booleans(),
    window=st.booleans(),
    exact=st.booleans(),
)
def test_sequences_of_unequal_lengths(
    chunks: list[list[int]], kind: str, rotary: bool, alibi: bool, window: bool, exact: bool
) -> None:
    """Each sequence of a padded batch gives what it gives alone, however it was cut."""
    module, mask = layer(rotary=rotary, alibi=alibi), mask_of(kind, window)
    totals = [sum(lengths[b] for lengths in chunks) for b in range(3)]
    x = inputs(3, max(*totals, 1))
    cache, outputs = make(kind, batch=3, max_length=max(*totals, 1)), [[], [], []]  # type: ignore[var-annotated]
    with torch.no_grad():
        done = [0, 0, 0]
        for lengths in chunks:
            n = max(lengths) + (0 if exact else 1)
            chunk = torch.full((3, n, WIDTH), float("nan"), dtype=torch.float64)  # padding of the worst kind
            for b, count in enumerate(lengths):
                chunk[b, :count] = x[b, done[b] : done[b] + count]
            y = module(chunk, mask=mask, cache=cache, lengths=torch.tensor(lengths))
            for b, count in enumerate(lengths):
                outputs[b].append(y[b, :count])
                done[b] += count
        assert cache.lengths.tolist() == totals
        # Then one more step for all, without padding.
        if kind != "static":
            last = inputs(3, 1)
            step = module(last, mask=mask, cache=cache)
        for b in range(3):
            whole = module(x[b : b + 1, : totals[b]], mask=mask)[0]
            torch.testing.assert_close(torch.cat(outputs[b]), whole, rtol=0, atol=1e-12)
            if kind != "static":
                longer = torch.cat((x[b, : totals[b]], last[b]))
                torch.testing.assert_close(step[b, 0], module(longer, mask=mask)[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["growing", "ring"])
def test_gradients_flow_through_earlier_chunks(kind: str) -> None:
    module, mask = layer(rotary=True), mask_of(kind)
    x = inputs().requires_grad_()
    (want,) = torch.autograd.grad(module(x, mask=mask).square().sum(), x)
    cache = make(kind)
    parts = [module(x[:, i : i + 4], mask=mask, cache=cache) for i in range(0, S, 4)]
    (got,) = torch.autograd.grad(torch.cat(parts, 1).square().sum(), x)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-11)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("kind", ["growing", "ring"])
def test_checkpointing_does_not_append_twice(kind: str, reentrant: bool) -> None:
    """A full ring has the same sizes the second time, so that torch's own check lets it pass."""
    module, cache, x = layer(), make(kind), inputs().requires_grad_()
    module(inputs(), cache=cache, mask=mask_of(kind))
    y = checkpoint(lambda x: module(x, cache=cache, mask=mask_of(kind)), x, use_reentrant=reentrant)
    with pytest.raises(RuntimeError, match="inside gradient checkpointing"):
        y.sum().backward()
    assert cache.lengths.tolist() == [2 * S, 2 * S]


def test_static_refuses_gradients() -> None:
    with pytest.raises(ValueError, match=r"torch\.no_grad\(\), or use a GrowingCache"):
        layer()(inputs(), mask=Causal(), cache=make("static"))


def test_static_keeps_its_tensors() -> None:
    cache = make("static")
    assert isinstance(cache, StaticCache)
    module, places = layer(), (cache.k.data_ptr(), cache.v.data_ptr())
    shapes = set()
    with torch.no_grad():
        for i in range(5):
            module(inputs()[:, i : i + 1], mask=Causal(), cache=cache)
            view = cache.k, cache.v, cache.next_positions(1)
            shapes.add(tuple(t.shape for t in view))
    cache.reset()
    cache.reorder(torch.tensor([1, 0]))
    assert (cache.k.data_ptr(), cache.v.data_ptr()) == places
    assert len(shapes) == 1


def test_ring_keeps_no_more_than_its_window() -> None:
    module, cache = layer(), RingCache(BEFORE)
    with torch.no_grad():
        module(inputs(), mask=Causal(), cache=cache)
    assert cache._k is not None
    assert cache._k.shape[-2] == BEFORE
    assert cache._k.untyped_storage().nbytes() == 2 * 2 * BEFORE * D_K * 8


def test_ring_is_its_window_whatever_the_mask() -> None:
    module, x = layer(), inputs()
    with torch.no_grad():
        whole = module(x, mask=Causal() & Window(BEFORE, None))
        at_once = module(x, mask=Causal(), cache=RingCache(BEFORE))
    torch.testing.assert_close(at_once, whole)


@pytest.mark.parametrize("before", [0, 1])
def test_smallest_windows(before: int) -> None:
    module, x, cache = layer(), inputs(), RingCache(before)
    with torch.no_grad():
        parts = [module(x[:, i : i + 2], mask=Causal(), cache=cache) for i in range(0, S, 2)]
        whole = module(x, mask=Window(before, 0))
    torch.testing.assert_close(torch.cat(parts, 1), whole)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_select_and_reorder(kind: str, unequal: bool) -> None:
    """Rows that stay go on as if the others had never been there."""
    module, mask, x = layer(rotary=True), mask_of(kind), inputs(3)
    lengths = torch.tensor([4, 2, 3]) if unequal else None
    for rows in (torch.tensor([2, 0]), torch.tensor([True, False, True]), torch.tensor([1, 1, 0])):
        with torch.no_grad():
            cache = make(kind, batch=3)
            module(x[:, :4], mask=mask, cache=cache, lengths=lengths)
            cache.select(rows)
            got = module(x[rows][:, 4:6], mask=mask, cache=cache)
            for place, row in enumerate(torch.arange(3)[rows].tolist()):
                n = 4 if lengths is None else int(lengths[row])
                alone = module(torch.cat((x[row, :n], x[row, 4:6])), mask=mask)
                torch.testing.assert_close(got[place], alone[-2:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_crop_goes_back(kind: str, unequal: bool) -> None:
    module, mask, x = layer(rotary=True), mask_of(kind), inputs()
    first = 3 if kind == "ring" else 5
    for n in (0, 2, 99, torch.tensor([1, 2])):
        with torch.no_grad():
            cache = make(kind)
            lengths = torch.tensor([first, first - 1]) if unequal else None
            module(x[:, :first], mask=mask, cache=cache, lengths=lengths)
            before = cache.lengths.tolist()
            cache.crop(n)
            limits = n.tolist() if isinstance(n, Tensor) else [n, n]
            kept = [min(*pair) for pair in zip(before, limits, strict=True)]
            assert cache.lengths.tolist() == kept
            got = module(x[:, 6:8], mask=mask, cache=cache)
            for b in range(2):
                alone = module(torch.cat((x[b, : kept[b]], x[b, 6:8])), mask=mask)
                torch.testing.assert_close(got[b], alone[-2:], rtol=0, atol=1e-12)


def test_ring_says_when_it_cannot_go_back() -> None:
    module, cache = layer(), RingCache(BEFORE)
    with torch.no_grad():
        module(inputs(), mask=Causal(), cache=cache)
    with pytest.raises(ValueError, match=rf"keeps {BEFORE} steps and has seen {S}"):
        cache.crop(4)
    cache.crop(S)
    assert cache.lengths.tolist() == [S, S]


@pytest.mark.parametrize("kind", KINDS)
def test_reset_starts_anew(kind: str) -> None:
    module, mask, x, cache = layer(rotary=True), mask_of(kind), inputs(), make(kind)
    with torch.no_grad():
        module(x[:, :4], mask=mask, cache=cache, lengths=torch.tensor([4, 1]))
        cache.reset()
        torch.testing.assert_close(module(x, mask=mask, cache=cache), module(x, mask=mask))


def test_no_batch_and_many_batch_dimensions() -> None:
    module, x = layer(rotary=True), inputs(6)
    for shape, kind in (
        ((), "growing"),
        ((), "ring"),
        ((2, 3), "growing"),
        ((2, 3), "ring"),
        ((2, 3), "static"),
    ):
        data = x.reshape(2, 3, S, WIDTH) if shape else x[0]
        mask = mask_of(kind)
        lengths = torch.tensor([[1, 2, 3], [3, 2, 0]]) if shape else torch.tensor(2)
        cache = StaticCache(shape, 2, S, D_K, D_V, dtype=torch.float64) if kind == "static" else make(kind)
        with torch.no_grad():
            module(data[..., :3, :], mask=mask, cache=cache, lengths=lengths)
            got = module(data[..., 3:5, :], mask=mask, cache=cache)
            assert torch.equal(cache.lengths, lengths + 2)
            for row, n in zip(range(6 if shape else 1), lengths.flatten().tolist(), strict=True):
                whole = module(torch.cat((x[row, :n], x[row, 3:5])), mask=mask)
                flat = got.reshape(-1, 2, WIDTH)
                torch.testing.assert_close(flat[row], whole[-2:], rtol=0, atol=1e-12)
