"""The specification: the paper's formula, written out.

Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V  (*Attention Is All You Need*, section 3.2.1), with
every option of `Problem`. It holds the whole weight matrix, and takes any dtype, double backward,
forward-mode derivatives and `torch.func` transforms. Every other kernel is tested against it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.kernels.base import Kernel
from headwise.kernels.blocks import block_scores
from headwise.kernels.dropout import keep
from headwise.kernels.live import live_product
from headwise.kernels.problem import Problem


class Reference(Kernel):
    name = "reference"
    linear_memory = False

    def supports(self, problem: Problem) -> tuple[str, ...]:
        return ()

    def solve(self, problem: Problem) -> tuple[Tensor, Tensor]:
        rows, cols = slice(0, problem.frame.q_len), slice(0, problem.frame.k_len)
        scores = block_scores(problem, rows, cols)  # [B, H, q_len, k_len], -inf where masked
        weights, lse = softmax(scores, problem.sinks)
        if problem.dropout:
            weights = weights * keep(problem, rows, cols) / (1 - problem.dropout)
        out = live_product(weights, scores != float("-inf"), problem.v.to(weights.dtype))
        out = torch.where(lse.isnan().unsqueeze(-1), float("nan"), out)
        return out.to(problem.v.dtype), lse


def softmax(scores: Tensor, sinks: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weights and log-sum-exp of scores [B, H, q_len, k_len]. A row that may attend to nothing gives 0 and
    -inf, one that attends to a score of NaN or +inf gives 0 and NaN; neither sends back a gradient."""
    columns = scores.shape[-1]
    if sinks is not None:  # one more column, which takes probability and gives nothing
        sink = sinks.to(scores.dtype).view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, sink], dim=-1)
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    broken = (scores.isnan() | (scores == float("inf"))).any(-1, keepdim=True)
    none = dead | broken
    scores = torch.where(none, 0, scores)
    lse = scores.logsumexp(-1, keepdim=True)
    # Not exp(scores - lse): lse is rounded, which shows in the weights where scores are huge.
    weights = torch.where(none, 0, scores.softmax(-1))[..., :columns]
    lse = torch.where(broken, float("nan"), torch.where(dead, float("-inf"), lse))
    return weights, lse.squeeze(-1)
