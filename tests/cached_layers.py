"""A small layer, its caches of every kind, and what they are fed."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.cache import Cache, GrowingCache, RingCache, StaticCache
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
