"""ALiBi: a penalty that grows linearly with distance (Press et al. 2021, arxiv.org/abs/2108.12409)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.positions.base import Bias


@dataclass(frozen=True, eq=False)
class ALiBi(Bias):
    """bias[h, i, j] = -slope_h * (i - j), i and j being positions.

    Keys newer than the query would gain, not lose; the paper hides them by a causal mask. For
    attention in both directions ask for `symmetric=True`: -slope_h * |i - j|.

    Args:
        slopes: float [heads], the loss per step of distance. May be learned (a Parameter).
        symmetric: count distance in both directions.

    Raises:
        ValueError: slopes aren't a float tensor [heads], or don't fit the number of heads of a call.
    """

    slopes: Tensor
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.slopes.ndim != 1 or not self.slopes.is_floating_point():
            raise ValueError(
                f"slopes is {self.slopes.dtype} {tuple(self.slopes.shape)}: expected a float tensor [heads]; "
                f"ALiBi.for_heads(n) makes the paper's."
            )

    @classmethod
    def for_heads(
        cls,
        heads: int,
        *,
        symmetric: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> ALiBi:
        """The paper's slopes for any number of heads; see `alibi_slopes`."""
        return cls(torch.tensor(alibi_slopes(heads), device=device, dtype=dtype), symmetric)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.slopes,)

    def with_tensors(self, *tensors: Tensor) -> ALiBi:
        (slopes,) = tensors
        return ALiBi(slopes, self.symmetric)

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        # Distances in float32 or better: bfloat16 holds no integer above 256 exactly.
        dtype = torch.promote_types(self.slopes.dtype, torch.float32)
        steps = (k_pos - q_pos).to(dtype)
        slopes = self.slopes.to(device=steps.device, dtype=dtype)[:, None, None]  # [heads, 1, 1]
        return slopes * (-steps.abs() if self.symmetric else steps)

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        if self.slopes.shape[0] != heads:
            raise ValueError(
                f"ALiBi has {self.slopes.shape[0]} slopes but the call has {heads} query heads: "
                f"use ALiBi.for_heads({heads})."
            )


def alibi_slopes(heads: int) -> list[float]:
    """The paper's slopes.

    For a power of two, the geometric sequence 2^(-8/n), 2^(-16/n), ..., 2^-8. For another number, the
    slopes of the power of two below it, then every second slope of the next power of two (the ones that
    lie between), as the authors' code does.

    Raises:
        ValueError: heads below 1.
    """
    if heads < 1:
        raise ValueError(f"heads={heads}: ALiBi needs 1 head or more.")
    below = 2 ** int(math.log2(heads))
    between = [2.0 ** (-8.0 * i / (2 * below)) for i in range(1, 2 * below + 1, 2)]
    return [2.0 ** (-8.0 * i / below) for i in range(1, below + 1)] + between[: heads - below]
