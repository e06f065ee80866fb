"""What the rest of a layer costs and holds."""

from __future__ import annotations

import torch

from headwise.models import FeedForward


def feed_forward_parameters(d_model: int, d_ff: int) -> int:
    """Parameters of one feed-forward network, with its biases."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in FeedForward(d_model, d_ff).parameters())


def feed_forward_products(n: int, d_model: int, d_ff: int) -> int:
    """Multiplications of one feed-forward network over n positions."""
    return 2 * n * d_model * d_ff


def norm_parameters(d_model: int) -> int:
    """Parameters of one layer norm: a gain and a bias for each component."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in torch.nn.LayerNorm(d_model).parameters())


def embedding_parameters(vocabulary: int, d_model: int) -> int:
    """Parameters of one embedding matrix."""
    return vocabulary * d_model
