"""How far headwise's and torch's fused outputs and gradients are from those in float64."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

import headwise as hw
from benchmarks.forward import DTYPES, HEADS, WIDTH

OUTPUT, GRADIENTS = "output", "gradients"


@functools.cache
def errors(length: int, dtype: str, causal: bool, spread: float) -> dict[tuple[str, str], float]:
    """||x - exact|| / ||exact||, of gradients the root of the mean square of the three, by what (`OUTPUT` or
    `GRADIENTS` of q, k and v) and whose ("headwise" or "SDPA").

    Args:
        spread: standard deviation of queries and keys; scores then have its square.
    """
    torch.manual_seed(29)
    shape = (1, HEADS, length, WIDTH)
    q, k = (spread * torch.randn(shape) for _ in range(2))
    sources = [x.to(DTYPES[dtype]).requires_grad_() for x in (q, k, torch.randn(shape))]
    d_out = torch.randn(shape).to(DTYPES[dtype])
    doubles = [x.detach().double().requires_grad_() for x in sources]
    exact = F.scaled_dot_product_attention(*doubles, is_causal=causal)
    exact_grads = torch.autograd.grad(exact, doubles, d_out.double())
    found = {}
    mask = hw.Causal() if causal else None
    for whose, run in (
        ("headwise", lambda: hw.attention(*sources, mask=mask)),
        ("SDPA", lambda: F.scaled_dot_product_attention(*sources, is_causal=causal)),
    ):
        out = run()
        grads = torch.autograd.grad(out, sources, d_out)
        found[OUTPUT, whose] = relative(out, exact)
        squares = [relative(mine, right) ** 2 for mine, right in zip(grads, exact_grads, strict=True)]
        found[GRADIENTS, whose] = (sum(squares) / len(squares)) ** 0.5
    return found


def relative(x: Tensor, exact: Tensor) -> float:
    return float((x.detach().double() - exact.detach()).norm() / exact.detach().norm())
