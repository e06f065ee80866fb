"""Rotary positions: queries and keys are turned by an angle that grows with their position.

RoFormer (arxiv.org/abs/2104.09864): after turning, the product of a query at i and a key at j depends
on i - j alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from headwise.positions.angles import frequencies, precise

Layout = Literal["half", "interleaved"]
LAYOUTS = get_args(Layout)


class Rotary(nn.Module):
    """Turns pairs of features: pair p of the vector at position m by the angle m * base^(-2p / r).

        (a, b) -> (a cos - b sin, a sin + b cos),        r = rotary_dim, p = 0 .. r/2 - 1

    The two layouts differ in which features make a pair; the same weights under the wrong one give
    garbage (`convert_rotary` reorders them):

        "half":        p and p + r/2    GPT-NeoX, Llama, Mistral, Qwen in Hugging Face's format
        "interleaved": 2p and 2p + 1    the RoFormer paper, GPT-J, Llama in Meta's format

    Angles, sines and cosines are computed in float64 (float32 where a device has no float64) and the
    turn in float32 or better, whatever the input's type and autocast say; the result has the input's
    type. There are no parameters and no buffers, so that `.half()` can't spoil the angles.

    Args:
        d_k: width of the queries and keys.
        base: 10000 in the paper; longer-context models use more (Llama 3: 500000).
        layout: which features make a pair.
        rotary_dim: turn only the first so many features (GPT-NeoX: a quarter of them). Default: all.
        scaling: changes the frequencies, float64 [rotary_dim / 2] -> the same shape, to reach longer
            texts than were trained on: `LinearScaling`, `Llama3Scaling`, or any function.

    Raises:
        ValueError: rotary_dim is odd, below 2 or above d_k; or an unknown layout.
    """

    def __init__(
        self,
        d_k: int,
        base: float = 10000.0,
        layout: Layout = "half",
        *,
        rotary_dim: int | None = None,
        scaling: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        rotary_dim = d_k if rotary_dim is None else rotary_dim
        check_rotary(d_k, rotary_dim, layout)
        if not 0 < base < math.inf:
            raise ValueError(f"base={base}: must be above 0 (the paper's is 10000).")
        self.d_k = d_k
        self.base = base
        self.layout = layout
        self.rotary_dim = rotary_dim
        self.scaling = scaling

    def turns(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each position's angles: two tensors [*positions, rotary_dim / 2].

        Compute them once where queries and keys stand at the same positions.
        """
        device = positions.device
        steps = frequencies(self.rotary_dim // 2, self.rotary_dim, self.base, device=device)
        if self.scaling is not None:
            steps = self.scaling(steps)
        angles = positions.to(precise(device)).unsqueeze(-1) * steps
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def turn(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """x [*batch, heads, length, d_k], turned by `turns` of positions [length] or [*batch, length]."""
        if x.ndim < 2 or x.shape[-1] != self.d_k:
            raise ValueError(
                f"x.shape={tuple(x.shape)}: Rotary(d_k={self.d_k}) expects "
                f"[*batch, heads, length, {self.d_k}]."
            )
        cos, sin = (t.unsqueeze(-3) if t.ndim > 2 else t for t in turns)  # [*batch, 1, length, r/2]
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        live, rest = wide[..., : self.rotary_dim], wide[..., self.rotary_dim :]
        if self.layout == "half":
            a, b = live.chunk(2, dim=-1)
            turned = torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)
        else:
            a, b = live[..., 0::2], live[..., 1::2]
            pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
            turned = torch.cat((pairs, rest), dim=-1)
        return turned.to(x.dtype)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Shapes: x [*batch, heads, length, d_k]; positions [length] or [*batch, length] -> as x.

        Raises:
            ValueError: x isn't d_k wide, or positions don't fit it.
        """
        if positions.shape[-1:] != x.shape[-2:-1] or positions.ndim not in (1, max(x.ndim - 2, 1)):
            raise ValueError(
                f"positions.shape={tuple(positions.shape)} and x.shape={tuple(x.shape)}: expected positions "
                f"[length] or [*batch, length] for x [*batch, heads, length, d_k]."
            )
        dtype = torch.promote_types(x.dtype, torch.float32)
        return self.turn(x, self.turns(positions, dtype=dtype))

    def extra_repr(self) -> str:
        partial = "" if self.rotary_dim == self.d_k else f", rotary_dim={self.rotary_dim}"
        scaled = "" if self.scaling is None else f", scaling={self.scaling}"
        return f"d_k={self.d_k}, base={self.base:g}, layout={self.layout!r}{partial}{scaled}"


def convert_rotary(
    weight: Tensor, *, num_heads: int, source: Layout, target: Layout, rotary_dim: int | None = None
) -> Tensor:
    """Reorders a query or key projection trained under one layout so that the other layout serves it.

    Scores stay the same when both the query and the key projection are converted.

    Args:
        weight: [num_heads * d_k, width] or its bias [num_heads * d_k] (for keys: the number of kv heads).
        source: the layout it was trained under.
        target: the layout it will be used under.
        rotary_dim: the features that are turned, of each head's d_k. Default: all.

    Raises:
        ValueError: rows don't divide into heads; an unknown layout; a rotary_dim that doesn't fit.
    """
    rows = weight.shape[0]
    if num_heads < 1 or rows % num_heads:
        raise ValueError(
            f"weight.shape={tuple(weight.shape)}: {rows} rows don't divide into {num_heads} heads."
        )
    d_k = rows // num_heads
    rotary_dim = d_k if rotary_dim is None else rotary_dim
    check_rotary(d_k, rotary_dim, source)
    check_rotary(d_k, rotary_dim, target)
    if source == target:
        return weight
    order = torch.arange(d_k, device=weight.device)
    turned = order[:rotary_dim]
    # Feature f of the result is feature order[f] of the source.
    pairs = turned.view(-1, 2).t() if source == "interleaved" else turned.view(2, -1).t()
    order = torch.cat((pairs.reshape(-1), order[rotary_dim:]))
    return weight.reshape(num_heads, d_k, *weight.shape[1:])[:, order].flatten(0, 1)


def check_rotary(d_k: int, rotary_dim: int, layout: str) -> None:
    """Raise ValueError unless the first rotary_dim of d_k features make pairs under a known layout."""
    if rotary_dim % 2 or not 2 <= rotary_dim <= d_k:
        raise ValueError(
            f"rotary_dim={rotary_dim} with d_k={d_k}: features are turned in pairs, so rotary_dim must be an "
            f"even number from 2 to d_k; an odd d_k leaves the rest with rotary_dim={max(d_k - d_k % 2, 2)}."
        )
    if layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r}: expected one of {LAYOUTS}.")
