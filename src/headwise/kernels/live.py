"""Matrix products in which a masked pair takes no part, even if it holds NaN or Inf.

Floating point says 0 x NaN = NaN, so a weight of 0 does not keep what is masked out of a sum. These
products do: each is the plain one where everything is finite, and costs a few more products of
indicators where not (complaint: pytorch#101967).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def live_scores(q: Tensor, k: Tensor) -> Tensor:
    """q k^T for grouped heads: q [..., H, r, d], k [..., Hk, c, d] -> [..., H, r, c].

    A row of q or k that holds NaN or Inf takes part as a constant: the product is what it should be,
    but no gradient is multiplied by it, so that 0 x NaN never reaches a gradient.
    """
    q_ok, k_ok = finite_rows(q), finite_rows(k)
    smooth = grouped_matmul(torch.where(q_ok, q, 0), torch.where(k_ok, k, 0).mT)
    ok = grouped_and(q_ok, k_ok) & smooth.detach().isfinite()  # a product that overflows is a constant too
    return torch.where(ok, smooth, grouped_matmul(q.detach(), k.detach().mT))


def finite_rows(x: Tensor) -> Tensor:
    """[..., n, 1]: whether every entry of the row is finite."""
    ok: Tensor = x.detach().isfinite().all(-1, keepdim=True)
    return ok


def grouped_matmul(left: Tensor, right: Tensor) -> Tensor:
    """left [..., H, r, n] @ right [..., Hk, n, c], where query head i meets key/value head
    i // (H / Hk); the right side is not copied."""
    heads, kv_heads = left.shape[-3], right.shape[-3]
    if heads == kv_heads:
        product: Tensor = left @ right
        return product
    rows = left.shape[-2]
    # Not by `unflatten`, which Dynamo can't follow under a default device.
    product = left.reshape(*left.shape[:-3], kv_heads, heads // kv_heads * rows, left.shape[-1]) @ right
    return product.reshape(*product.shape[:-3], heads, rows, product.shape[-1])


def grouped_and(q_ok: Tensor, k_ok: Tensor) -> Tensor:
    groups = q_ok.shape[-3] // max(1, k_ok.shape[-3])
    return q_ok & k_ok.repeat_interleave(groups, dim=-3).mT


def live_product(weights: Tensor, allow: Tensor, values: Tensor) -> Tensor:
    """sum_j weights_ij values_j over the pairs that `allow` holds.

    A NaN among the allowed values makes that output NaN, an Inf makes it Inf of that sign (weights are
    probabilities); neither sends back a gradient. Values that are not allowed take no part.

    Shapes: weights, allow [..., H, r, c]; values [..., Hk, c, d] -> [..., H, r, d].
    """
    finite = values.isfinite()
    weights = torch.where(allow, weights, 0)  # keeps the gradient of a weight away from what is masked
    out = grouped_matmul(weights, torch.where(finite, values, 0))
    return out + spread(allow, values.detach()).to(out.dtype)


def spread(allow: Tensor, values: Tensor) -> Tensor:
    """What the non-finite entries of `values` do to each sum over allowed pairs: 0, Inf, -Inf or NaN."""
    pairs = allow.to(values.dtype)
    inf = float("inf")
    up = grouped_matmul(pairs, (values == inf).to(values.dtype)) > 0
    down = grouped_matmul(pairs, (values == -inf).to(values.dtype)) > 0
    nan = (grouped_matmul(pairs, values.isnan().to(values.dtype)) > 0) | (up & down)
    taint = torch.zeros_like(up, dtype=values.dtype)
    return taint.masked_fill(up, inf).masked_fill(down, -inf).masked_fill(nan, float("nan"))


def all_finite(*tensors: Tensor) -> bool:
    """Whether every entry is finite, and no product of two rows of the tensors can overflow: by one norm
    of each, since |x . y| <= |x| |y|. (Numbers near the largest float say no: the careful path is only
    slower.)"""
    return all(math.isfinite(_norm(t.detach()).item()) for t in tensors)


def all_numbers(x: Tensor) -> bool:
    """Whether every entry is finite, by one sum, the fastest way to look at each. (Huge numbers whose sum
    overflows say no.)"""
    x = in_memory_order(x.detach() if x.requires_grad else x)
    total = x.sum(dtype=torch.float32) if x.dtype == torch.float16 else x.sum()
    return math.isfinite(total.item())


def in_memory_order(x: Tensor) -> Tensor:
    """The same entries with the dimensions in the order of memory, in which they are read fastest."""
    if x.is_contiguous():
        return x
    between = x.transpose(-2, -3)  # heads that lie between rows
    return (
        between if between.is_contiguous() else x.permute(sorted(range(x.ndim), key=x.stride, reverse=True))
    )


def _norm(x: Tensor) -> Tensor:
    x = in_memory_order(x)
    half = x.dtype in (torch.float16, torch.bfloat16)
    norm: Tensor = torch.linalg.vector_norm(x, dtype=torch.float32 if half else None)
    return norm
