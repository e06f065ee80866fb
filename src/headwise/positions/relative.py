"""T5's relative positions: one learned number per head and bucket of distances (arxiv.org/abs/1910.10683)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.positions.base import Bias


def relative_buckets(steps: Tensor, *, buckets: int, bidirectional: bool, max_distance: int) -> Tensor:
    """Bucket of each step = key position - query position, int64 of the same shape.

    With both directions, the first half of the buckets is for keys at or before the query, the second
    half for keys after it; with one, keys after the query count as distance 0. In a half of n buckets,
    distances below n // 2 have a bucket each; those above share buckets that widen logarithmically:

        n//2 + floor( log(distance / (n//2)) / log(max_distance / (n//2)) * (n - n//2) ),  at most n - 1

    in float32, as T5 was trained.
    """
    half = buckets // 2 if bidirectional else buckets
    distance = steps.abs() if bidirectional else (-steps).clamp(min=0)
    exact = half // 2
    ratio = torch.log(distance.clamp(min=1).to(torch.float32) / exact) / math.log(max_distance / exact)
    wide = (exact + (ratio * (half - exact)).to(torch.int64)).clamp(max=half - 1)
    bucket = torch.where(distance < exact, distance, wide)
    return bucket + half * (steps > 0) if bidirectional else bucket


@dataclass(frozen=True, eq=False)
class RelativeBuckets(Bias):
    """bias[h, i, j] = table[bucket(j - i), h]; see `relative_buckets`.

    Args:
        table: float [buckets, heads], learned.
        bidirectional: tell keys after the query from keys before it (T5's encoder); a decoder says False.
        max_distance: distances from here on share the last bucket.

    Raises:
        ValueError: the table isn't float [buckets, heads], there are too few buckets, or `max_distance`
            is not beyond the distances that have a bucket each.
    """

    table: Tensor
    bidirectional: bool = True
    max_distance: int = 128

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or not self.table.is_floating_point():
            raise ValueError(
                f"table is {self.table.dtype} {tuple(self.table.shape)}: expected a float tensor "
                f"[buckets, heads], such as T5's relative_attention_bias.weight."
            )
        check_buckets(self.table.shape[0], self.bidirectional, self.max_distance)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    def with_tensors(self, *tensors: Tensor) -> RelativeBuckets:
        (table,) = tensors
        return RelativeBuckets(table, self.bidirectional, self.max_distance)

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        # Beyond max_distance nothing changes, so one number per distance up to there says it all: the
        # logarithms are taken of 2 * max_distance + 1 distances, not of q x k.
        far = self.max_distance
        table = self.table.to(q_pos.device)
        distances = torch.arange(-far, far + 1, device=q_pos.device)
        buckets = relative_buckets(
            distances, buckets=table.shape[0], bidirectional=self.bidirectional, max_distance=far
        )
        by_distance = table[buckets].t()  # [heads, 2 far + 1]
        steps = (k_pos - q_pos).clamp(-far, far) + far  # [..., q, k]
        heads = torch.arange(table.shape[1], device=q_pos.device)[:, None, None]
        return by_distance[heads, steps]  # [..., heads, q, k]

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        if self.table.shape[1] != heads:
            raise ValueError(
                f"The table of relative positions is [buckets, heads] = {tuple(self.table.shape)} but the "
                f"call has {heads} query heads: give it {heads} columns."
            )


class RelativeBias(nn.Module):
    """Owns a table of relative positions and hands out the `RelativeBuckets` over it.

    T5 keeps one for its first layer and shares it with the others: give several layers the same module.

    State dict: `weight` [buckets, heads] (T5's `relative_attention_bias.weight`), drawn from N(0, 0.02^2).
    """

    def __init__(
        self,
        num_heads: int,
        *,
        buckets: int = 32,
        bidirectional: bool = True,
        max_distance: int = 128,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if num_heads < 1:
            raise ValueError(f"num_heads={num_heads}: must be 1 or more.")
        check_buckets(buckets, bidirectional, max_distance)
        self.bidirectional = bidirectional
        self.max_distance = max_distance
        self.weight = nn.Parameter(torch.empty(buckets, num_heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def forward(self) -> RelativeBuckets:
        return RelativeBuckets(self.weight, self.bidirectional, self.max_distance)

    def extra_repr(self) -> str:
        buckets, heads = self.weight.shape
        directions = "both directions" if self.bidirectional else "one direction"
        return f"heads={heads}, buckets={buckets}, {directions}, max_distance={self.max_distance}"


def check_buckets(buckets: int, bidirectional: bool, max_distance: int) -> None:
    """Raise ValueError where the buckets don't cover the distances."""
    least = 4 if bidirectional else 2
    if buckets < least or (bidirectional and buckets % 2):
        raise ValueError(
            f"buckets={buckets}, bidirectional={bidirectional}: needs {least} or more"
            + (", and an even number (half for each direction)." if bidirectional else ".")
        )
    exact = (buckets // 2 if bidirectional else buckets) // 2
    if max_distance <= exact:
        raise ValueError(
            f"max_distance={max_distance} with buckets={buckets}: distances below {exact} have a bucket "
            f"each, so max_distance must be {exact + 1} or more."
        )
