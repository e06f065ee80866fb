"""Caches: any chunking equals the whole."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from headwise.cache import Cache, CrossCache, GrowingCache, LayerCaches, RingCache, StaticCache
from headwise.masks import Causal, Mask, Window
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary

S, WIDTH, D_K, D_V = 11, 5, 6, 7
KINDS = ["growing", "static", "ring"]
BEFORE = 3


def layer(
    *, kv_heads: int = 2, rotary: bool = False, alibi: bool = False, **options: object
) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(
        WIDTH,
        4,
        d_k=D_K,
        d_v=D_V,
        num_kv_heads=kv_heads,
        rotary=Rotary(D_K) if rotary else None,
        score_bias=ALiBi.for_heads(4) if alibi else None,
        dtype=torch.float64,
        **options,  # type: ignore[arg-type]
    )


def make(kind: str, batch: int = 2, kv_heads: int = 2, max_length: int = S) -> Cache:
    if kind == "static":
        cache = StaticCache(batch, kv_heads, max_length, D_K, D_V, dtype=torch.float64)
        # Whatever stands in unused slots must not be seen.
        cache.k.fill_(float("nan"))
        cache.v.fill_(float("nan"))
        return cache
    return RingCache(BEFORE) if kind == "ring" else GrowingCache()


def mask_of(kind: str, window: bool = False) -> Mask:
    return Causal() & Window(BEFORE, None) if window or kind == "ring" else Causal()


def inputs(batch: int = 2, length: int = S) -> Tensor:
    return torch.randn(batch, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


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


def test_static_refuses_what_does_not_fit_and_loses_nothing() -> None:
    module, x, cache = layer(), inputs(), make("static", max_length=5)
    with torch.no_grad():
        first = module(x[:, :3], mask=Causal(), cache=cache)
        with pytest.raises(
            ValueError, match=r"up to 3 of max_length=5 steps and 4 more don't fit.*max_length=7"
        ):
            module(x[:, 3:7], mask=Causal(), cache=cache)
        with pytest.raises(ValueError, match="max_length=5"):
            module(x[:, 3:7], mask=Causal(), cache=cache, lengths=torch.tensor([3, 1]))
        # Padding that sticks out is no trouble.
        second = module(x[:, 3:7], mask=Causal(), cache=cache, lengths=torch.tensor([2, 2]))[:, :2]
        whole = module(x[:, :5], mask=Causal())
    torch.testing.assert_close(torch.cat((first, second), 1), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_call_leaves_no_trace(kind: str) -> None:
    module, mask, x, cache = layer(rotary=True), mask_of(kind), inputs(), make(kind)
    with torch.no_grad():
        first = module(x[:, :4], mask=mask, cache=cache)
        with pytest.raises(ValueError, match="bias"):
            module(x[:, 4:], mask=mask, cache=cache, bias=torch.randn(13, 17))
        second = module(x[:, 4:], mask=mask, cache=cache)
        torch.testing.assert_close(torch.cat((first, second), 1), module(x, mask=mask))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"kernel": "reference", "strict": True}, {}),
        ({"kernel": "no such kernel"}, {}),
        ({}, {"mask": torch.ones(1, 1, dtype=torch.bool)}),  # no Mask: refused where masks are joined
        ({}, {"bias": "none"}),
    ],
)
def test_whoever_refuses_a_call_the_cache_stays(
    kind: str, options: dict[str, object], arguments: dict[str, object]
) -> None:
    module, x, cache = layer(alibi=True), inputs(), make(kind)
    for name, value in options.items():
        setattr(module, name, value)
    with torch.no_grad(), pytest.raises((TypeError, ValueError)):
        module(x, cache=cache, **arguments)
    assert int(cache.lengths.sum()) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (-1, ValueError, r"0 or more.*cache.lengths - m"),
        (torch.tensor([2, -1]), ValueError, r"crop\(-1\)"),
        (torch.tensor([1, 2, 3]), ValueError, r"n.shape=\(3,\)"),
        (2.5, TypeError, "2.5"),
        (True, TypeError, "True"),
        (torch.tensor([1.0, 2.0]), TypeError, "float32"),
        ([1, 2], TypeError, r"\[1, 2\]"),
    ],
)
def test_crop_takes_counts(kind: str, n: Any, error: type[Exception], message: str) -> None:
    cache = make(kind)
    cache.append(
        torch.zeros(2, 2, 3, D_K, dtype=torch.float64), torch.zeros(2, 2, 3, D_V, dtype=torch.float64)
    )
    with pytest.raises(error, match=message):
        cache.crop(n)
    assert cache.lengths.tolist() == [3, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_lengths_are_tensors_of_indices(kind: str) -> None:
    cache = make(kind)
    k, v = torch.zeros(2, 2, 3, D_K, dtype=torch.float64), torch.zeros(2, 2, 3, D_V, dtype=torch.float64)
    cache.append(k, v)
    for call in (cache.select, cache.reorder, lambda rows: cache.append(k, v, lengths=rows)):
        with pytest.raises(TypeError, match=r"torch.tensor\(\[0, 1\]\)"):
            call([0, 1])
    with pytest.raises(ValueError, match="uint8"):  # which torch would take for a mask
        cache.select(torch.tensor([0, 1], dtype=torch.uint8))
    assert cache.lengths.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"k": torch.zeros(2, 2, 3, D_K), "v": torch.zeros(2, 2, 4, D_V)}, "alike but for the last"),
        ({"k": torch.zeros(3, D_K), "v": torch.zeros(3, D_V)}, r"expected \[\*batch, kv_heads, n, d_k\]"),
        ({"lengths": torch.tensor([1.0, 2.0])}, "one int64 for each sequence"),
        ({"lengths": torch.tensor([1, 2, 3])}, r"one int64 for each sequence, \(2,\)"),
        ({"lengths": torch.tensor([1, 4])}, "go from 1 to 4, but the chunk has 3 steps"),
        ({"lengths": torch.tensor([-1, 2])}, "go from -1 to 2"),
        ({"k": torch.zeros(3, 2, 3, D_K), "v": torch.zeros(3, 2, 3, D_V)}, "the cache holds"),
        ({"k": torch.zeros(2, 2, 3, D_K + 1)}, "the cache holds"),
        ({"v": torch.zeros(2, 2, 3, D_V).half()}, "one type and device"),
        (
            {"k": torch.zeros(2, 2, 3, D_K).half(), "v": torch.zeros(2, 2, 3, D_V).half()},
            r"float16 on cpu, the cache holds torch.float32",
        ),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_append(kind: str, chunk: dict[str, Tensor], message: str) -> None:
    cache = StaticCache(2, 2, S, D_K, D_V) if kind == "static" else make(kind)
    good = {"k": torch.zeros(2, 2, 3, D_K), "v": torch.zeros(2, 2, 3, D_V)}
    cache.append(**good)
    with pytest.raises(ValueError, match=message):
        cache.append(**{**good, **chunk})
    assert cache.lengths.tolist() == [3, 3]


def test_other_errors() -> None:
    cache = GrowingCache()
    cache.append(torch.zeros(2, 2, 3, D_K), torch.zeros(2, 2, 3, D_V))
    with pytest.raises(ValueError, match=r"one int64 index for each sequence"):
        cache.reorder(torch.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match="expected int64 indices"):
        cache.select(torch.tensor([True, False, True]))
    deep = GrowingCache()
    deep.append(torch.zeros(2, 3, 2, 3, D_K), torch.zeros(2, 3, 2, 3, D_V))
    with pytest.raises(ValueError, match="batch has one dimension"):
        deep.select(torch.tensor([0]))
    with pytest.raises(ValueError, match="before=-1"):
        RingCache(-1)
    with pytest.raises(ValueError, match="max_length=0"):
        StaticCache(2, 2, 0, D_K)
    with pytest.raises(ValueError, match="layers=0"):
        LayerCaches(GrowingCache, 0)


def test_empty_chunks_and_batches() -> None:
    module = layer(rotary=True)
    for kind in KINDS:
        with torch.no_grad():
            cache = make(kind, batch=0)
            assert module(inputs(0, 3), mask=mask_of(kind), cache=cache).shape == (0, 3, WIDTH)
            cache = make(kind)
            assert module(inputs(2, 0), mask=mask_of(kind), cache=cache).shape == (2, 0, WIDTH)
            torch.testing.assert_close(
                module(inputs(), mask=mask_of(kind), cache=cache), module(inputs(), mask=mask_of(kind))
            )


def cross() -> tuple[MultiHeadAttention, Tensor, Tensor]:
    torch.manual_seed(0)
    module = MultiHeadAttention(
        WIDTH, 2, memory_dim=3, d_k=D_K, d_v=D_V, rotary=Rotary(D_K), dtype=torch.float64
    )
    return module, inputs(), torch.randn(2, 7, 3, dtype=torch.float64)


def test_cross_cache_computes_a_memory_once() -> None:
    module, x, memory = cross()
    calls: list[str] = []
    for name in ("q_proj", "k_proj", "v_proj"):
        getattr(module, name).register_forward_hook(lambda *_, name=name: calls.append(name))
    want = [module(x, memory), module(x[:, :3], memory)]
    calls.clear()
    cache = CrossCache()
    got = [module(x, memory, cache=cache), module(x[:, :3], cache=cache)]
    assert calls == ["q_proj", "k_proj", "v_proj", "q_proj"]
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(module(x[:, :3], memory, cache=cache), want[1])
    cache.reorder(torch.tensor([1, 0]))
    torch.testing.assert_close(module(x[:, :3].flip(0), cache=cache), want[1].flip(0))
    assert cache.length == 7
    cache.reset()
    assert not cache.filled


def test_a_refused_call_does_not_fill_a_cross_cache() -> None:
    """Else the next call, with another memory of the same length, would read the first one's keys."""
    module, x, memory = cross()
    cache = CrossCache()
    with pytest.raises(ValueError, match="bias"):
        module(x, memory, cache=cache, bias=torch.randn(13, 17))
    assert not cache.filled
    torch.testing.assert_close(module(x, memory + 1, cache=cache), module(x, memory + 1))


@pytest.mark.parametrize("of_each", [False, True])
def test_a_cross_cache_knows_where_its_keys_stand(of_each: bool) -> None:
    module, x, memory = cross()
    module.score_bias = ALiBi.for_heads(2, symmetric=True, dtype=torch.float64)
    at = 5 * torch.arange(7)
    at = torch.stack((at, at + 3)) if of_each else at
    cache = CrossCache()
    want = module(x, memory, memory_positions=at, mask=Causal())
    module(x, memory, cache=cache, memory_positions=at)
    torch.testing.assert_close(module(x, cache=cache, mask=Causal()), want)
    torch.testing.assert_close(module(x, memory, cache=cache, memory_positions=at, mask=Causal()), want)
    with pytest.raises(ValueError, match="others than those"):
        module(x, memory, cache=cache, memory_positions=at + 1)
    with pytest.raises(ValueError, match="one int64 index for each sequence"):
        cache.reorder(torch.tensor([1, 1, 0]))
    cache.reorder(torch.tensor([1, 0]))
    torch.testing.assert_close(module(x.flip(0), cache=cache, mask=Causal()), want.flip(0))


def test_cross_cache_errors() -> None:
    module, x, memory = cross()
    cache = CrossCache()
    with pytest.raises(ValueError, match="CrossCache is empty"):
        module(x, cache=cache)
    module(x, memory, cache=cache)
    with pytest.raises(ValueError, match=r"holds 7 keys.*reset\(\)"):
        module(x, memory[:, :5], cache=cache)
    with pytest.raises(ValueError, match=r"cache=CrossCache\(\)"):
        module(x, memory, cache=GrowingCache())


@pytest.mark.parametrize("new", [GrowingCache, lambda: RingCache(BEFORE)])
def test_caches_of_all_layers(new: Callable[[], Cache]) -> None:
    layers, x = [layer(rotary=True), layer(alibi=True)], inputs()
    mask = Window(BEFORE, 0)

    def run(x: Tensor, caches: LayerCaches | None) -> Tensor:
        for i, module in enumerate(layers):
            x = module(x, mask=mask, cache=None if caches is None else caches[i])
        return x

    with torch.no_grad():
        caches = LayerCaches(new, len(layers))
        assert len(list(caches)) == len(caches) == 2
        run(x[:, :3], caches)
        assert caches.next_positions(2).tolist() == [3, 4]
        caches.crop(2)
        caches.reorder(torch.tensor([1, 0]))
        caches.select(torch.tensor([0]))
        assert caches.lengths.tolist() == [2]
        got = run(x[1:, 2:], caches)
        torch.testing.assert_close(got, run(x[1:], None)[:, 2:])
        caches.reset()
        assert int(caches.lengths.sum()) == 0


@pytest.mark.parametrize("kind", [*KINDS, "cross"])
def test_one_cache_serves_one_layer(kind: str) -> None:
    """What a layer computed with its cache is what it computes without one that another layer fills, and the
    mistake of sharing it is refused before anything is kept."""
    first, second, x = layer(), layer(), inputs()
    cross = kind == "cross"
    cache: Any = CrossCache() if cross else make(kind)
    call: dict[str, Any] = {"memory": x[:, :7]} if cross else {"mask": mask_of(kind)}
    with torch.no_grad():
        first(x[:, :3], cache=cache, **call)
        before = repr(cache)
        with pytest.raises(
            ValueError, match=r"each layer needs its own cache, LayerCaches\(GrowingCache, n\)"
        ):
            second(x[:, :3], cache=cache, **call)
        assert repr(cache) == before
        for copied in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
            again = first(x[:, 3:4], cache=copied, **call)
            torch.testing.assert_close(again, first(x[:, 3:4], cache=copy.deepcopy(cache), **call))
        cache.select(torch.tensor([1, 0]))
        cache.reorder(torch.tensor([1, 0]))
        if not cross:
            cache.crop(3)
        with pytest.raises(ValueError, match="each layer needs its own cache"):
            second(x[:, 3:4], cache=cache, **call)
        first(x[:, 3:4], cache=cache, **call)
        cache.reset()
        torch.testing.assert_close(second(x[:, :3], cache=cache, **call), second(x[:, :3], **call))


def test_a_refused_call_does_not_take_a_cache() -> None:
    first, second, x, cache = layer(), layer(), inputs(), GrowingCache()
    with pytest.raises(ValueError, match="bias"):
        first(x, cache=cache, bias=torch.zeros(2, 3, 5, dtype=torch.float64))
    second(x, mask=Causal(), cache=cache)
    assert cache.lengths.tolist() == [S, S]


def test_a_cache_does_not_keep_its_layer_alive() -> None:
    cache, x = GrowingCache(), inputs()
    with torch.no_grad():
        layer()(x[:, :2], mask=Causal(), cache=cache)
        gc.collect()
        layer()(x[:, 2:], mask=Causal(), cache=cache)  # the other is gone, and nobody else can have filled it
    assert cache.lengths.tolist() == [S, S]


def test_a_cache_says_what_it_holds() -> None:
    module, x = layer(), inputs()
    static = StaticCache.for_layer(module, 2, S)
    growing, ring, cross = GrowingCache(), RingCache(BEFORE), CrossCache()
    assert repr(growing) == "GrowingCache(empty)"
    assert repr(ring) == "RingCache(before=3, empty)"
    assert repr(cross) == "CrossCache(empty)"
    with torch.no_grad():
        for cache in (static, growing, ring):
            module(x[:, :5], mask=Causal(), cache=cache, lengths=torch.tensor([5, 2]))
        module(x, x[:, :7], cache=cross)
    heads = "batch=[2], kv_heads=2, d_k=6, d_v=7"
    assert repr(static) == f"StaticCache({heads}, max_length=11, steps=2 .. 5, float64 on cpu)"
    assert repr(growing) == f"GrowingCache({heads}, steps=2 .. 5, float64 on cpu)"
    assert repr(ring) == f"RingCache({heads}, before=3, steps=2 .. 5, float64 on cpu)"
    assert repr(cross) == f"CrossCache({heads}, keys=7, float64 on cpu)"
    assert repr(LayerCaches(GrowingCache, 3)) == "LayerCaches(3 x GrowingCache(empty))"


def test_a_static_cache_is_made_for_a_layer_or_says_which_sizes_lack() -> None:
    module = layer(kv_heads=1)
    cache = StaticCache.for_layer(module, (2, 3), max_length=5)
    assert (cache.k.shape, cache.v.shape) == ((2, 3, 1, 5, D_K), (2, 3, 1, 5, D_V))
    assert cache.k.dtype == torch.float64
    assert StaticCache.for_layer(module, 2, 5, dtype=torch.bfloat16).k.dtype == torch.bfloat16
    named = StaticCache(batch=2, kv_heads=1, max_length=5, d_k=D_K)
    assert named.v.shape == (2, 1, 5, D_K)
    with pytest.raises(
        TypeError, match=r"lacks kv_heads, max_length, d_k: give batch=.*for_layer\(layer, batch"
    ):
        StaticCache(32)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"max_length=5\.0: expected a whole number"):
        StaticCache(2, 1, 5.0, D_K)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Linear without num_kv_heads, d_k, d_v"):
        StaticCache.for_layer(torch.nn.Linear(2, 3), 2, 5)


def test_caches_of_layers_that_read_a_memory() -> None:
    """Self-attention and cross-attention, two layers deep, step by step and with beams, equal the whole."""
    torch.manual_seed(0)
    own = [layer() for _ in range(2)]
    across = [layer() for _ in range(2)]
    for module in (*own, *across):
        module.reset_parameters()
    x, memory = inputs(), inputs(length=7)

    def through(x: Tensor, memory: Tensor | None, caches: LayerCaches | None = None) -> Tensor:
        for i in range(2):
            x = x + own[i](x, mask=Causal(), cache=caches and caches[i])
            x = x + across[i](x, memory, cache=caches and caches.memory[i])
        return x

    with torch.no_grad():
        whole = through(x, memory)
        caches = LayerCaches(GrowingCache, 2, cross=True)
        parts = [through(x[:, :5], memory, caches)]
        beams = torch.tensor([1, 1, 0])
        caches.select(beams)
        parts.append(through(x[beams, 5:], None, caches))
        torch.testing.assert_close(
            torch.cat((parts[0][beams], parts[1]), 1), whole[beams], rtol=0, atol=1e-12
        )
        caches.reset()
        assert [one.length for one in caches.memory] == [0, 0]
    with pytest.raises(TypeError, match="expected what makes a cache when called"):
        LayerCaches(GrowingCache(), 2)  # type: ignore[arg-type]
    same = GrowingCache()
    with pytest.raises(ValueError, match="same cache twice"):
        LayerCaches(lambda: same, 2)
