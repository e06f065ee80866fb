"""Biases as matrices."""

from __future__ import annotations

from torch import Tensor

from headwise.kernels import Problem
from headwise.positions import ALiBi, Bias, RelativeBuckets
from headwise.positions.base import Sum
from headwise.positions.relative import relative_buckets


def dense_bias(bias: Bias, flat: Problem) -> Tensor:
    """[B, H, q_len, k_len], from the definition of each bias."""
    frame = flat.frame
    full = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
    if isinstance(bias, Sum):
        return dense_bias(bias.left, flat) + dense_bias(bias.right, flat)
    steps = frame.k_pos.unsqueeze(-2) - frame.q_pos.unsqueeze(-1)  # [B or nothing, q_len, k_len]
    steps = steps.unsqueeze(-3)
    if isinstance(bias, ALiBi):
        slopes = bias.slopes.view(-1, 1, 1)
        return (slopes * (-steps.abs() if bias.symmetric else steps)).expand(full)
    if isinstance(bias, RelativeBuckets):
        numbers = relative_buckets(
            steps,
            buckets=bias.table.shape[0],
            bidirectional=bias.bidirectional,
            max_distance=bias.max_distance,
        )
        return bias.table[numbers.squeeze(-3)].movedim(-1, -3).expand(full)
    (tensor,) = bias.tensors()
    return tensor.expand(full)
