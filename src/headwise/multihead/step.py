"""The next step of a text: a layer's call with a cache, by the shortest way.

Decoding calls every layer for one token at a time, and most of its time would go into what a call costs
besides arithmetic. Where a call is of the plainest kind, this computes the same numbers with the same
operations, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.cache import Cache, CrossCache, GrowingCache, StaticCache
from headwise.kernels.addresses import readable
from headwise.kernels.direct import direct, direct_will_do
from headwise.kernels.native_build import isa
from headwise.kernels.native_call import forward_plain
from headwise.kernels.plain import kernel_of_sizes
from headwise.masks import Causal, KeyLengths
from headwise.masks.base import Mask
from headwise.multihead.projections import project

if TYPE_CHECKING:
    from headwise.multihead.layer import MultiHeadAttention


def step(layer: MultiHeadAttention, x: Tensor, mask: Mask | None, cache: Cache | CrossCache) -> Tensor | None:
    """What `layer(x, mask=mask, cache=cache)` gives, x being [batch, length, input_dim] (one step of its own
    sequence, or queries to a memory that is kept). None, and nothing done, where that isn't plain."""
    if not (direct_will_do(x) and _is_plain(layer, x)):
        return None
    if type(cache) is GrowingCache or type(cache) is StaticCache:
        heads = _own(layer, x, mask, cache)
    elif type(cache) is CrossCache:
        heads = _across(layer, x, mask, cache)
    else:
        return None
    if heads is None:
        return None
    cache.claim(layer)
    if x.shape[1] == 1:
        joined = heads.reshape(len(x), 1, heads.shape[1] * heads.shape[3])
    else:
        joined = heads.transpose(1, 2).flatten(2)
    return project(layer.out_proj, joined)


def _is_plain(layer: MultiHeadAttention, x: Tensor) -> bool:
    return (
        x.ndim == 3
        and x.shape[2] == layer.input_dim
        and x.dtype == getattr(getattr(layer.q_proj, "weight", None), "dtype", None)
        and layer.kernel == "auto"
        and not (layer.training and layer.dropout)
        and not layer.attention_hooks
        and layer.gate_proj is None
        and layer.score_bias is None
        and layer.softcap is None
        and layer.sinks is None
    )


def _own(
    layer: MultiHeadAttention, x: Tensor, mask: Mask | None, cache: GrowingCache | StaticCache
) -> Tensor | None:
    """The heads of one more step of the layer's own sequence, which is then kept."""
    length = cache.next_length
    if length is None or x.shape[1] != 1 or not (mask is None or type(mask) is Causal):
        return None
    kernel = _kernel(layer, x, length)
    if kernel is None or (kernel == "torch" and cache.uneven):
        return None
    cache.check_owner(layer)
    # All three before the step is kept: one may raise.
    q = _split_one(project(layer.q_proj, x), layer.num_heads)
    k = _split_one(project(layer.k_proj, x), layer.num_kv_heads)
    v = _split_one(project(layer.v_proj, x), layer.num_kv_heads)
    q = q if layer.q_norm is None else layer.q_norm(q).to(q.dtype)
    k = k if layer.k_norm is None else layer.k_norm(k).to(k.dtype)
    if layer.rotary is not None:
        dtype = torch.promote_types(q.dtype, torch.float32)
        turns = layer.rotary.turns(cache.next_positions(1, device=x.device), dtype=dtype)
        q, k = layer.rotary.turn(q, turns), layer.rotary.turn(k, turns)
    pushed = cache.push(k, v)
    if pushed is None:
        return None
    k, v, seen, lengths = pushed
    if kernel == "torch" and seen is not None:
        k, v = _first(k, seen), _first(v, seen)
    ahead = None if seen is None or seen == length else seen - 1
    out = _attend(layer, kernel, q, k, v, ahead, lengths, k_len=length)
    if out is not None:
        cache.keep_pushed(pushed)
    return out


def _across(layer: MultiHeadAttention, x: Tensor, mask: Mask | None, cache: CrossCache) -> Tensor | None:
    """The heads of queries to a memory."""
    if layer.rotary is not None or not (mask is None or type(mask) is KeyLengths):
        return None
    cache.check_owner(layer)
    seen = cache.visible(mask)
    if seen is None or len(seen.k) != len(x):
        return None
    kernel = _kernel(layer, x, seen.k.shape[2])
    if kernel is None:
        return None
    q = split(project(layer.q_proj, x), layer.num_heads)
    q = q if layer.q_norm is None else layer.q_norm(q).to(q.dtype)
    if kernel == "torch":
        k, v = _first(seen.k, seen.length), _first(seen.v, seen.length)
        return _attend(layer, kernel, q, k, v, None, None, seen.added)
    return _attend(layer, kernel, q, seen.k, seen.v, None, seen.lengths)


def _kernel(layer: MultiHeadAttention, x: Tensor, k_len: int) -> str | None:
    """The kernel for queries of x to so many keys."""
    batch, q_len, _ = x.shape
    q = batch, layer.num_heads, q_len, layer.d_k
    k = batch, layer.num_kv_heads, k_len, layer.d_k
    return kernel_of_sizes("cpu", x.dtype, q, k, (*k[:3], layer.d_v), isa())


def _attend(
    layer: MultiHeadAttention,
    kernel: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    ahead: int | None,
    lengths: Tensor | None,
    added: Tensor | None = None,
    k_len: int | None = None,
) -> Tensor | None:
    """Attention by a kernel, with the way of hiding keys (one of three) that it has."""
    if not (q.dtype == k.dtype == v.dtype and _fit(layer, q, k, v)):
        return None
    scale = layer.d_k**-0.5 if layer.scale is None else layer.scale
    if kernel == "torch":
        return direct(q, k, v, scale, added)
    if not (q.is_cpu and k.is_cpu and v.is_cpu and readable(q) and readable(k) and readable(v)):
        return None
    return forward_plain(q, k, v, scale, ahead, lengths, k_len)


def _fit(layer: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the shapes are those of the layer: projections may be adapted, and a cache another's."""
    batch, heads, _, width = q.shape
    of_keys, kv_heads, k_len, d_k = k.shape
    of_values, value_heads, values, _ = v.shape
    return (
        batch == of_keys == of_values
        and heads == layer.num_heads
        and kv_heads == value_heads == layer.num_kv_heads
        and k_len == values
        and width == d_k
    )


def _first(x: Tensor, length: int) -> Tensor:
    """The first keys or values of [batch, kv_heads, k_len, d]."""
    return x if x.shape[2] == length else x.narrow(2, 0, length)


def _split_one(projected: Tensor, heads: int) -> Tensor:
    """`split` of a single step, in one operation."""
    batch, _, width = projected.shape
    return projected.reshape(batch, heads, 1, width // heads)


def split(projected: Tensor, heads: int) -> Tensor:
    """[*batch, length, heads * d] -> [*batch, heads, length, d]."""
    shape = (*projected.shape[:-1], heads, projected.shape[-1] // heads)
    return projected.reshape(shape).transpose(-3, -2)
