"""Cross-entropy against smoothed targets, as a sum over tokens and their count."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


class TokenLoss(NamedTuple):
    """What `token_loss` gives. Divide by `tokens` for means; sums add up over batches and processes."""

    loss_sum: Tensor  # scalar, carries gradients
    tokens: int  # that were counted: all but padding
    nll_sum: (
        Tensor  # scalar without gradients: the loss without smoothing; exp(nll / tokens) is the perplexity
    )


def token_loss(
    logits: Tensor, targets: Tensor, *, smoothing: float = 0.0, pad_id: int | None = None
) -> TokenLoss:
    """Cross-entropy between the model's distribution p and targets q smoothed by eps, summed over tokens.

        q_k = (1 - eps) * [k = target] + eps / K                     K classes, the target among them
        loss = sum over tokens of  -sum_k q_k log p_k
             = sum over tokens of  (1 - eps) * (-log p_target) + eps * mean_k(-log p_k)

    This is the Kullback-Leibler divergence KL(q || p) plus the entropy of q, which no model can go below:
    see `smoothing_floor`. Both have the same gradient, p - q, which is written in one pass over the logits.
    Tokens whose target is `pad_id` count for nothing and get no gradient, whatever their logits hold.

    Computed in float32 or better under autocast too. Once differentiable.
    Source: Szegedy et al. 2016, *Rethinking the Inception Architecture*, 7; *Attention Is All You Need*, 5.4.

    Args:
        logits: [..., K]
        targets: [...], whole numbers from 0 to K - 1
        smoothing: eps, from 0 to less than 1
        pad_id: the target that is not counted; None counts all

    Raises:
        ValueError: shapes that don't fit, smoothing outside [0, 1), targets outside 0..K-1.
        TypeError: targets that aren't whole numbers.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}: it must be at least 0 and less than 1")
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits are {list(logits.shape)} and targets {list(targets.shape)}: "
            "targets must have the logits' shape without its last dimension"
        )
    if targets.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"targets are {targets.dtype}: they must be whole numbers (torch.int64)")
    classes = logits.shape[-1]
    flat = targets.reshape(-1).long()
    logits = logits.reshape(-1, classes)
    if pad_id is not None:
        keep = flat != pad_id
        if not bool(keep.all()):
            flat, logits = flat[keep], logits[keep]  # so that NaN in padding can't leak
    lowest, highest = (int(flat.min()), int(flat.max())) if flat.numel() else (0, 0)
    if flat.numel() and (lowest < 0 or highest >= classes):
        raise ValueError(
            f"targets reach from {lowest} to {highest}: with {classes} classes they must lie "
            f"in 0..{classes - 1} (or be pad_id, which is {pad_id})"
        )
    with torch.autocast(logits.device.type, enabled=False):
        wide = logits if logits.dtype == torch.float64 else logits.float()
        loss_sum, nll_sum = _SmoothedCrossEntropy.apply(wide, flat, smoothing)  # type: ignore[no-untyped-call]
    return TokenLoss(loss_sum, flat.numel(), nll_sum)


def smoothing_floor(smoothing: float, classes: int) -> float:
    """The entropy of the smoothed targets in nats: the least cross-entropy that any model can reach.

        -(1 - eps + eps/K) * log(1 - eps + eps/K) - (K - 1) * eps/K * log(eps/K)

    1.3769 nats for eps = 0.1 and K = 37,000: a perplexity of 3.963, though the model be perfect.

    Raises:
        ValueError: smoothing outside [0, 1), fewer than 1 class.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}: it must be at least 0 and less than 1")
    if classes < 1:
        raise ValueError(f"{classes} classes: there must be at least 1")
    if smoothing == 0:
        return 0.0
    other = smoothing / classes
    true = 1 - smoothing + other
    return -true * math.log(true) - (classes - 1) * other * math.log(other)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Sums over rows; the gradient of a row is softmax(logits) - q."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        log_p = F.log_softmax(logits, -1)  # [N, K]
        nll_sum = -log_p.gather(1, targets[:, None]).sum()
        loss_sum = nll_sum
        if smoothing:
            loss_sum = (1 - smoothing) * nll_sum - smoothing / logits.shape[-1] * log_p.sum()
        ctx.save_for_backward(log_p, targets)
        ctx.smoothing = smoothing
        nll_sum = nll_sum.clone()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        log_p, targets = ctx.saved_tensors
        grad = log_p.exp()
        if ctx.smoothing:
            grad.sub_(ctx.smoothing / grad.shape[-1])
        rows = torch.arange(len(targets), device=targets.device)
        grad[rows, targets] -= 1 - ctx.smoothing
        return grad.mul_(grad_loss), None, None
