"""Reading connectionist temporal classification (Graves et al. 2006)."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.models.checks import check_lengths


@torch.no_grad()
def ctc_greedy(logits: Tensor, lengths: Tensor | None = None, *, blank: int = 0) -> list[list[int]]:
    """The most probable class of each frame, repeats made one, blanks left out.

    Shapes: [batch, frames, V] -> one list of tokens for each entry.

    Args:
        lengths: int64 [batch], how many frames of each are real. Default: all.
    """
    if logits.ndim != 3:
        raise ValueError(f"logits must be [batch, frames, V], got shape {tuple(logits.shape)}")
    check_lengths("lengths", lengths, logits.shape[0])
    best = logits.argmax(-1)  # [batch, frames]
    new = torch.ones_like(best, dtype=torch.bool)
    new[:, 1:] = best[:, 1:] != best[:, :-1]
    new &= best != blank
    if lengths is not None:
        new &= torch.arange(best.shape[1], device=best.device) < lengths[:, None]
    return [row[keep].tolist() for row, keep in zip(best, new, strict=True)]
