"""The paper's positional encoding (Attention Is All You Need, section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.positions.angles import frequencies, precise
from headwise.positions.steps import check_width, steps_from


def sinusoidal(
    length: int,
    d_model: int,
    *,
    base: float = 10000.0,
    positions: Tensor | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Sines and cosines of every position, one wavelength per pair of columns.

        PE[pos, 2i]     = sin(pos / base^(2i / d_model))
        PE[pos, 2i + 1] = cos(pos / base^(2i / d_model))

    An odd `d_model` ends with a sine that has no cosine. Angles are computed in float64 (float32
    where a device has no float64), so that far positions keep their phase.

    Args:
        length: number of positions, 0 .. length - 1 (unless `positions` is given).
        d_model: width of the encoding.
        base: the paper's 10000.
        positions: numbers [..., length] to encode in place of 0 .. length - 1 (they may be fractions).
        dtype: of the result (default: torch's default dtype).
        device: of the result (default: that of `positions`, else torch's default device).

    Returns: [..., length, d_model].

    Raises:
        ValueError: `d_model` below 1, `length` below 0, a base that isn't a positive number, or `positions`
            whose last dimension isn't `length`.
        TypeError: a `dtype` that holds no fractions.
    """
    if not 0 < base < math.inf:
        raise ValueError(f"base={base}: must be a number above 0 (the paper's is 10000).")
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(
            f"dtype={dtype}: sines and cosines lie between -1 and 1, so it must be floating-point."
        )
    if d_model < 1 or length < 0:
        raise ValueError(
            f"d_model={d_model} and length={length}: d_model must be 1 or more, length 0 or more."
        )
    if positions is None:
        positions = torch.arange(length, device=device)
    elif positions.shape[-1:] != (length,):
        raise ValueError(
            f"positions.shape={tuple(positions.shape)} but length={length}: the last dimension of positions "
            f"must be length; pass length=positions.shape[-1]."
        )
    device = positions.device if device is None else torch.device(device)
    pairs = (d_model + 1) // 2
    steps = frequencies(pairs, d_model, base, device=device)  # [pairs]
    angles = positions.to(device=device, dtype=precise(device)).unsqueeze(-1) * steps  # [..., length, pairs]
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # sin, cos, sin, cos, ...
    return waves[..., :d_model].to(dtype or torch.get_default_dtype())


class Sinusoidal(nn.Module):
    """x + PE: adds the paper's positional encoding to embeddings. It has no parameters and no limit.

    Args:
        d_model: width of the embeddings.
        base: the paper's 10000.
    """

    def __init__(self, d_model: int, *, base: float = 10000.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.base = base

    def forward(self, x: Tensor, *, offset: int | Tensor = 0, positions: Tensor | None = None) -> Tensor:
        """Shapes: x [*batch, length, d_model] -> the same.

        Args:
            offset: position of the first step (a number, or int64 [*batch], one for each sequence).
            positions: the positions themselves, [length] or [*batch, length], in place of `offset`.

        Raises:
            ValueError: x isn't `d_model` wide.
        """
        check_width(x, self.d_model)
        if positions is None:
            positions = steps_from(offset, x.shape[-2], x.device)
        encoding = sinusoidal(x.shape[-2], self.d_model, base=self.base, positions=positions, dtype=x.dtype)
        return x + encoding

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, base={self.base:g}"
