"""What a cache refuses, and that it stays as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from cached_layers import D_K, D_V, KINDS, WIDTH, S, inputs, layer, make, mask_of
from headwise.cache import GrowingCache, LayerCaches, RingCache, StaticCache
from headwise.masks import Causal


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
