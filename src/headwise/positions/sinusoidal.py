"""The paper's positional encoding (Attention Is All You Need, section 3.5)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from headwise.positions.angles import frequencies, precise
from headwise.positions.steps import check_width, steps_from

_BLOCK = 256  # positions whose encodings are made at once
_MOST = 1 << 14  # positions whose encodings are kept


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
        self._table: Tensor | None = None  # of positions 0, 1, ... as far as they were asked for

    def forward(self, x: Tensor, *, offset: int | Tensor = 0, positions: Tensor | None = None) -> Tensor:
        """Shapes: x [*batch, length, d_model] -> the same.

        Args:
            offset: position of the first step (a number, or int64 [*batch], one for each sequence).
            positions: the positions themselves, [length] or [*batch, length], in place of `offset`.

        Raises:
            ValueError: x isn't `d_model` wide.
        """
        check_width(x, self.d_model)
        length = x.shape[-2]
        if positions is None and isinstance(offset, int) and offset >= 0:
            table = self._rows(x, offset + length)
            if table is not None:
                return x + table[offset : offset + length]
        if positions is None:
            positions = steps_from(offset, length, x.device)
        elif positions.numel() == length == 1 and positions.dtype == torch.int64 and _readable(positions):
            place = int(positions)  # the next step of a text
            table = self._rows(x, place + 1) if place >= 0 else None
            if table is not None:
                return x + table[place]
        return x + sinusoidal(length, self.d_model, base=self.base, positions=positions, dtype=x.dtype)

    def _rows(self, x: Tensor, count: int) -> Tensor | None:
        """The encodings of positions 0 .. count - 1 or more, in x's dtype; None where x shows that this is
        no time to keep them. They are made in blocks of one size: so they are the same, to the last bit,
        whatever was asked for before."""
        if not _known(x) or count > _MOST:
            return None
        table = self._table
        if table is None or table.dtype != x.dtype or table.device != x.device:
            table = None
        have = 0 if table is None else len(table)
        if table is None or have < count:
            with torch.inference_mode(False), torch.no_grad():
                blocks = [] if table is None else [table]
                for first in range(have, max(count, 1), _BLOCK):
                    places = torch.arange(first, first + _BLOCK, device=x.device)
                    made = sinusoidal(_BLOCK, self.d_model, base=self.base, positions=places, dtype=x.dtype)
                    blocks.append(made)
                table = self._table = torch.cat(blocks)
        return table

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, base={self.base:g}"


def _known(*tensors: Tensor) -> bool:
    """Whether these are plain tensors with numbers, and nobody traces what is done with them."""
    return not torch.compiler.is_compiling() and all(
        type(one) is Tensor and one.device.type == "cpu" for one in tensors
    )


def _readable(positions: Tensor) -> bool:
    """Whether these are one sequence's numbers, which hold for this call alone."""
    return (
        _known(positions)
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
        and torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is None
    )
