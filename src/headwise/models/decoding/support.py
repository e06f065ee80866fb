"""Which tokens a sample may take."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def keep_likely(
    log_p: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Log-probabilities of the distribution that is sampled from, -inf for what it leaves out.

    In this order: p^(1 / temperature), renormalised; the `top_k` most probable tokens (Fan et al. 2018);
    of these, renormalised, the fewest most probable whose probabilities sum to `top_p` or more (Holtzman et
    al. 2019), at least one. Of equally probable tokens, those of lower id come first.

    Shapes: [..., V] -> [..., V].

    Raises:
        ValueError: temperature not above 0, top_k below 1, top_p outside (0, 1].
    """
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature={temperature}: must be a number above 0; for the most probable token at each step "
            "use greedy"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k}: the number of tokens to choose from, 1 or more; None for all")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p}: a share of probability, 0 < top_p <= 1; None for all")
    log_p = (log_p / temperature).log_softmax(-1)
    narrow_k = top_k is not None and top_k < log_p.shape[-1]
    narrow_p = top_p is not None and top_p < 1
    if not narrow_k and not narrow_p:
        return log_p
    ordered, order = log_p.sort(dim=-1, descending=True, stable=True)
    stays = torch.ones_like(ordered, dtype=torch.bool)
    if narrow_k:
        stays[..., top_k:] = False
        ordered = ordered.masked_fill(~stays, -torch.inf).log_softmax(-1)
    if top_p is not None and narrow_p:
        p = ordered.exp()
        before = p.cumsum(-1) - p  # what more probable tokens have together
        stays = stays & (before < top_p)
        stays[..., 0] = True
    kept = torch.zeros_like(stays).scatter(-1, order, stays)
    return log_p.masked_fill(~kept, -torch.inf).log_softmax(-1)
