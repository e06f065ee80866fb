"""What encodings that are added to embeddings share: where steps stand, and how wide they are."""

from __future__ import annotations

import torch
from torch import Tensor


def steps_from(offset: int | Tensor, length: int, device: torch.device | str | None = None) -> Tensor:
    """Positions offset, offset + 1, ...: [length], or [*batch, length] for an offset [*batch]."""
    if not isinstance(offset, Tensor):
        return torch.arange(offset, offset + length, device=device)
    return offset.unsqueeze(-1) + torch.arange(length, device=offset.device if device is None else device)


def check_width(x: Tensor, d_model: int) -> None:
    """Raise ValueError unless x is [*batch, length, d_model]."""
    if x.ndim < 2 or x.shape[-1] != d_model:
        raise ValueError(
            f"x.shape={tuple(x.shape)}: expected [*batch, length, {d_model}]. Give the positions module "
            f"d_model={x.shape[-1] if x.ndim else 1}, or x the width {d_model}."
        )
