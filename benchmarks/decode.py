"""Decoding: one new query over many keys, and a layer that makes one token after another.

"by hand" is the layer as one writes it with torch alone: four linears, torch.cat and
F.scaled_dot_product_attention. "again" computes the whole prefix anew for each token, without a cache.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

import headwise as hw
from benchmarks.common import Case, Way
from benchmarks.module import headwise_layer
from benchmarks.program import Program, main

D_MODEL, HEADS = 512, 8
STEPS = 8  # tokens made in one call
KEYS = {"quick": (32,), "short": (2048, 8192), "full": (2048, 4096, 8192, 16384, 32768)}
PREFIX = {"quick": (16,), "short": (512,), "full": (128, 512, 2048, 8192)}
AGAIN = 2048  # longest prefix that is computed anew for each token


def one_query(length: int, kv_heads: int) -> list[Way]:
    torch.manual_seed(19)
    width = D_MODEL // HEADS
    q = torch.randn(1, HEADS, 1, width)
    k, v = (torch.randn(1, kv_heads, length, width) for _ in range(2))

    def eager(_: Any) -> torch.Tensor:
        queries = q.view(1, kv_heads, HEADS // kv_heads, width)
        weights = torch.softmax(torch.matmul(queries, k.mT) * width**-0.5, -1)
        return torch.matmul(weights, v).view(1, HEADS, 1, width)

    return [
        Way("headwise", lambda _: hw.attention(q, k, v, mask=hw.Causal())),
        Way("SDPA", lambda _: F.scaled_dot_product_attention(q, k, v, enable_gqa=kv_heads < HEADS)),
        Way("eager", eager),
    ]


class ByHand:
    """A layer's step with torch alone."""

    def __init__(self, layer: hw.MultiHeadAttention) -> None:
        self.layer = layer

    def split(self, x: torch.Tensor) -> torch.Tensor:
        parted: torch.Tensor = x.unflatten(-1, (HEADS, -1))
        return parted.transpose(1, 2)

    def start(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.split(self.layer.k_proj(x)), self.split(self.layer.v_proj(x))

    def step(self, x: torch.Tensor, kept: tuple[torch.Tensor, torch.Tensor]) -> Any:
        q = self.split(self.layer.q_proj(x))
        new = self.start(x)
        k, v = (torch.cat(pair, dim=2) for pair in zip(kept, new, strict=True))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.layer.out_proj(out.transpose(1, 2).flatten(2)), (k, v)


def tokens(length: int) -> list[Way]:
    torch.manual_seed(19)
    layer = headwise_layer(D_MODEL, HEADS).eval()
    whole = torch.randn(1, length + STEPS, D_MODEL)
    prefix, new = whole[:, :length], whole[:, length:].split(1, dim=1)
    causal, hand = hw.Causal(), ByHand(layer)

    def filled(cache: hw.GrowingCache | hw.StaticCache) -> Any:
        with torch.no_grad():
            layer(prefix, mask=causal, cache=cache)
        return cache

    @torch.no_grad()
    def steps(cache: Any) -> torch.Tensor:
        cache.crop(length)  # as it was before the last call
        return torch.cat([layer(x, mask=causal, cache=cache) for x in new], dim=1)

    @torch.no_grad()
    def steps_by_hand(kept: Any) -> torch.Tensor:
        made = []
        for x in new:
            y, kept = hand.step(x, kept)
            made.append(y)
        return torch.cat(made, dim=1)

    @torch.no_grad()
    def steps_again(_: Any) -> torch.Tensor:
        made = [layer(whole[:, : length + n + 1], mask=causal)[:, -1:] for n in range(STEPS)]
        return torch.cat(made, dim=1)

    def static() -> Any:
        return filled(hw.StaticCache(1, HEADS, length + STEPS, D_MODEL // HEADS))

    def roomy() -> Any:
        return filled(hw.StaticCache(1, HEADS, 2 * length + STEPS, D_MODEL // HEADS))

    found = [
        Way("headwise", steps, static),
        Way("static, half empty", steps, roomy),
        Way("growing", steps, lambda: filled(hw.GrowingCache())),
        Way("by hand", steps_by_hand, torch.no_grad()(lambda: hand.start(prefix))),
    ]
    return found + ([Way("again", steps_again)] if length <= AGAIN else [])


def cases(size: str) -> list[Case]:
    found = [_query(length, kv_heads) for kv_heads in (HEADS, 2) for length in KEYS[size]]
    return found + [_tokens(length) for length in PREFIX[size]]


def _query(length: int, kv_heads: int) -> Case:
    return Case(("one query", str(length), str(kv_heads)), lambda: one_query(length, kv_heads))


def _tokens(length: int) -> Case:
    return Case((f"{STEPS} tokens of a layer", str(length), str(HEADS)), lambda: tokens(length))


PROGRAM = Program(
    "decode",
    f"decoding, {HEADS} heads of {D_MODEL // HEADS}, float32",
    ("what", "keys", "kv heads"),
    cases,
    split=True,
    peers=("SDPA", "eager", "static, half empty", "growing", "by hand", "again"),
    notes=("headwise's column is the StaticCache in the rows of a layer",),
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
