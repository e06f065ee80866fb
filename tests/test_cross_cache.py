"""Caches of a memory that is read by cross-attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cached_layers import D_K, D_V, WIDTH, inputs
from headwise.cache import CrossCache, GrowingCache
from headwise.masks import Causal
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary


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
