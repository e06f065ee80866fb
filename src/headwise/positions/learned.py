"""One learned vector for each position."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.positions.steps import check_width, steps_from


class LearnedPositions(nn.Module):
    """x + W[pos]: adds a learned vector per position, W in R^{max_length x d_model}.

    The paper found it no better than the sinusoids (section 3.5 and Table 3, row E); BERT, GPT-2 and
    ViT use it. Unlike the sinusoids it ends: there is no vector for position `max_length`.

    State dict: `weight` [max_length, d_model], drawn from N(0, 0.02^2).
    """

    def __init__(
        self,
        max_length: int,
        d_model: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if max_length < 1 or d_model < 1:
            raise ValueError(f"max_length={max_length} and d_model={d_model}: both must be 1 or more.")
        self.max_length = max_length
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(max_length, d_model, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor, *, offset: int | Tensor = 0, positions: Tensor | None = None) -> Tensor:
        """Shapes: x [*batch, length, d_model] -> the same.

        Args:
            offset: position of the first step (a number, or int64 [*batch], one for each sequence).
            positions: the positions themselves, int64 [length] or [*batch, length], in place of `offset`.

        Raises:
            TypeError: positions that are no whole numbers.
            ValueError: x isn't `d_model` wide, positions that don't fit it, or a position is below 0 or
                beyond the table.
        """
        check_width(x, self.d_model)
        length = x.shape[-2]
        if positions is None and isinstance(offset, int):
            if offset < 0 or offset + length > self.max_length:
                raise ValueError(self._beyond(offset, offset + length - 1))
            return x + self.weight[offset : offset + length].to(x.dtype)
        if positions is None:
            positions = steps_from(offset, length, x.device)
        if positions.dtype not in (torch.int64, torch.int32):
            raise TypeError(
                f"positions are {positions.dtype}: the table has one vector for each whole number."
            )
        lead = zip(reversed(positions.shape[:-1]), reversed(x.shape[:-2]), strict=False)
        fits = positions.ndim < x.ndim and all(have in (1, want) for have, want in lead)
        if not fits or positions.shape[-1:] != (length,):
            raise ValueError(
                f"positions.shape={tuple(positions.shape)} and x.shape={tuple(x.shape)}: expected positions "
                f"[length] or [*batch, length] for x [*batch, length, d_model]."
            )
        if not torch.compiler.is_compiling() and positions.numel():
            low, high = int(positions.min()), int(positions.max())
            if low < 0 or high >= self.max_length:
                raise ValueError(self._beyond(low, high))
        return x + self.weight[positions].to(x.dtype)

    def _beyond(self, low: int, high: int) -> str:
        return (
            f"positions {low} to {high}, but the table holds positions 0 to {self.max_length - 1}: "
            f"shorten the input, or build LearnedPositions({max(high + 1, self.max_length)}, {self.d_model})."
        )

    def extra_repr(self) -> str:
        return f"max_length={self.max_length}, d_model={self.d_model}"
