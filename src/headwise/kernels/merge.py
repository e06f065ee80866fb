"""Results over disjoint sets of keys, joined into the result over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def merge(parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Join attention over disjoint key sets exactly.

        lse = log sum_r exp(lse_r),    out = sum_r exp(lse_r - lse) out_r

    A part that attended to nothing (out 0, lse -inf) is the identity. Differentiable in every out_r and
    lse_r. If there are sinks, give them to one of the parts.

    Args:
        parts: (out [..., q_len, d_v], lse [..., q_len]) of each key set, as `attention(...,
            observe=[LogSumExp()])` returns them.

    Returns:
        (out, lse) of the union of the key sets.

    Raises:
        ValueError: no parts, or shapes that differ.
    """
    if not parts:
        raise ValueError("merge needs at least one part (out, lse), and got none")
    shapes = [(tuple(out.shape), tuple(lse.shape)) for out, lse in parts]
    for number, (out, lse) in enumerate(shapes):
        if out[:-1] != lse or out != shapes[0][0]:
            raise ValueError(
                f"part {number} has out {list(out)} and lse {list(lse)}: every part must have the shape of "
                f"the first, out {list(shapes[0][0])} and lse {list(shapes[0][0][:-1])}"
            )
    all_lse = torch.stack([lse for _, lse in parts])  # [parts, ..., q_len]
    dead = (all_lse == float("-inf")).all(0)
    # A row that attends to nothing in any part has no gradient; 0 stands in for -inf to keep NaN out.
    safe = torch.where(dead, 0, all_lse)
    total = safe.logsumexp(0)
    shares = torch.where(dead, 0, safe.softmax(0))  # [parts, ..., q_len]
    dtype = parts[0][0].dtype
    joined = torch.zeros((), dtype=total.dtype, device=total.device)
    for (part, _), share in zip(parts, shares, strict=True):
        share = share.unsqueeze(-1)
        joined = joined + torch.where(share == 0, 0, part) * share
    return joined.to(dtype), torch.where(dead, float("-inf"), total)
