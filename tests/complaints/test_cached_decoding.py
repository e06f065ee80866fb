"""Cached decoding and chunked prefill.

- flax#5591 (PR#5592): decoding with a cache applied the causal mask at the wrong offset.
- TinyLLM#17, llm2vec#79: the wrong causal offset again; in a probe of another library, a
  chunk's keys were cut to the first ones, as if queries started where keys start.
- pytorch#108108: is_causal with fewer queries than keys shows a decoding step only the oldest key.
- pytorch#101967: NaN in cache slots that hold nothing yet leaks into the output.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from headwise.cache import Cache, GrowingCache, RingCache, StaticCache
from headwise.masks import Causal, Window
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary

S = 7


def new_cache(kind: str, dtype: torch.dtype) -> Cache:
    if kind == "ring":
        return RingCache(3)
    if kind == "growing":
        return GrowingCache()
    cache = StaticCache(2, 2, S + 2, 8, 8, dtype=dtype)
    cache.k.fill_(float("nan"))
    cache.v.fill_(float("inf"))
    return cache


def every_split(length: int) -> list[list[int]]:
    """All 2^(length - 1) ways to cut a sequence, as the cut points with both ends."""
    splits = []
    for bits in range(2 ** (length - 1)):
        cuts = [i + 1 for i in range(length - 1) if bits >> i & 1]
        splits.append([0, *cuts, length])
    return splits


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
@pytest.mark.parametrize("kind", ["growing", "static", "ring"])
def test_every_split_of_a_sequence_equals_the_whole(kind: str, positions: str) -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(
        32,
        4,
        num_kv_heads=2,
        rotary=Rotary(8) if positions == "rotary" else None,
        score_bias=ALiBi.for_heads(4) if positions == "alibi" else None,
    )
    x, mask = torch.randn(2, S, 32), Window(3, 0) if kind == "ring" else Causal()
    with torch.no_grad():
        whole = layer(x, mask=mask)
        for split in every_split(S):
            cache = new_cache(kind, torch.float32)
            parts = [layer(x[:, a:b], mask=mask, cache=cache) for a, b in pairwise(split)]
            torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["growing", "static"])
def test_two_queries_against_six_keys(kind: str) -> None:
    """The case in which another library cut the keys to the first two."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(16, 2, num_kv_heads=2)
    x = torch.randn(2, 6, 16)
    with torch.no_grad():
        cache = new_cache(kind, torch.float32)
        layer(x[:, :4], mask=Causal(), cache=cache)
        late = layer(x[:, 4:], mask=Causal(), cache=cache)
        # The last query sees every key: changing any of them moves it.
        for position in range(4):
            changed = x.clone()
            changed[:, position] += 1
            cache = new_cache(kind, torch.float32)
            layer(changed[:, :4], mask=Causal(), cache=cache)
            assert not torch.allclose(layer(changed[:, 4:], mask=Causal(), cache=cache)[:, -1], late[:, -1])


@pytest.mark.parametrize("kind", ["growing", "static", "ring"])
def test_one_step_at_the_end_sees_all_it_may(kind: str) -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(16, 2, num_kv_heads=2), torch.randn(2, S, 16)
    with torch.no_grad():
        cache = new_cache(kind, torch.float32)
        layer(x[:, :-1], mask=Causal(), cache=cache)
        step = layer(x[:, -1:], mask=Causal(), cache=cache)
        # For one query, causal hides nothing: the same as asking without a mask.
        seen = x[:, -4:] if kind == "ring" else x
        torch.testing.assert_close(step, layer(x[:, -1:], seen), rtol=0, atol=1e-5)
    assert step.isfinite().all()
