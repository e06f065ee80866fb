"""Caches of all layers of a model, and which layer each belongs to."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from cached_layers import BEFORE, D_K, D_V, KINDS, S, inputs, layer, make, mask_of
from headwise.cache import Cache, CrossCache, GrowingCache, LayerCaches, RingCache, StaticCache
from headwise.masks import Causal, Window


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
