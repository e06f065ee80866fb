"""The next step of a text: a layer's call with a cache, by the shortest way.

Decoding calls every layer for one token at a time, and most of its time would go into what a call costs
besides arithmetic. Where a call is of the plainest kind, this computes the same numbers with the same
operations, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from headwise.cache import Cache, CrossCache, GrowingCache
from headwise.kernels.direct import direct, direct_will_do
from headwise.kernels.native_call import forward_plain
from headwise.kernels.plain import plain_kernel
from headwise.masks import Causal, KeyLengths
from headwise.masks.base import Mask
from headwise.multihead.projections import project

if TYPE_CHECKING:
    from headwise.multihead.layer import MultiHeadAttention


def step(
    layer: MultiHeadAttention, x: Tensor, mask: Mask | None, cache: Cache | CrossCache, *others: object
) -> Tensor | None:
    """What `layer(x, mask=mask, cache=cache)` gives, x being [batch, length, input_dim] (one step of its own
    sequence, or queries to a memory that is kept). None, and nothing done, where that isn't plain, or the
    call has other arguments."""
    if any(one is not None for one in others) or not (direct_will_do(x) and _is_plain(layer, x)):
        return None
    if type(cache) is GrowingCache:
        if x.shape[1] != 1 or not cache.takes_steps or not (mask is None or type(mask) is Causal):
            return None
        cache.check_owner(layer)
        linears = (layer.q_proj, layer.k_proj, layer.v_proj)
        # All three before the step is kept: one may raise.
        q, k, v = (split(project(linear, x), layer.num_heads) for linear in linears)
        mark = cache.mark()
        pushed = cache.push(k, v)
        if pushed is None:
            return None
        heads = _attend(layer, q, *pushed, None)
        if heads is None:
            cache.rollback(mark)
            return None
    elif type(cache) is CrossCache:
        if not (mask is None or type(mask) is KeyLengths):
            return None
        cache.check_owner(layer)
        seen = cache.visible(mask)
        if seen is None or len(seen.k) != len(x):
            return None
        heads = _attend(layer, split(project(layer.q_proj, x), layer.num_heads), *seen)
        if heads is None:
            return None
    else:
        return None
    cache.claim(layer)
    y: Tensor = project(layer.out_proj, heads.transpose(1, 2).flatten(2))
    return y


def _is_plain(layer: MultiHeadAttention, x: Tensor) -> bool:
    return (
        x.ndim == 3
        and x.shape[2] == layer.input_dim
        and x.dtype == getattr(getattr(layer.q_proj, "weight", None), "dtype", None)
        and layer.num_kv_heads == layer.num_heads
        and layer.d_k == layer.d_v
        and layer.kernel == "auto"
        and not (layer.training and layer.dropout)
        and not layer.attention_hooks
        and layer.rotary is None
        and layer.q_norm is None
        and layer.k_norm is None
        and layer.gate_proj is None
        and layer.score_bias is None
        and layer.softcap is None
        and layer.sinks is None
    )


def _attend(
    layer: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, added: Tensor | None
) -> Tensor | None:
    if not (q.dtype == k.dtype == v.dtype and q.shape[-1] == k.shape[-1] == v.shape[-1]):
        return None
    scale = layer.d_k**-0.5 if layer.scale is None else layer.scale
    if (
        plain_kernel(q, k, v) == "native"
    ):  # which takes no numbers for keys of padding: the long way has a mask
        return forward_plain(q, k, v, scale, None) if added is None else None
    return direct(q, k, v, scale, added)


def split(projected: Tensor, heads: int) -> Tensor:
    """[*batch, length, heads * d] -> [*batch, heads, length, d]."""
    shape = (*projected.shape[:-1], heads, projected.shape[-1] // heads)
    return projected.reshape(shape).transpose(-3, -2)
