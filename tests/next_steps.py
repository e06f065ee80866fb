"""Layers that take the long way of a call, beside which the shortest one is held."""

from __future__ import annotations

import copy

import torch

from headwise.multihead import MultiHeadAttention

DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def long_way(plain: MultiHeadAttention) -> MultiHeadAttention:
    """The same layer with a hook, for which everything must be there."""
    other = copy.deepcopy(plain)
    other.attention_hooks.append(lambda call, lse: None)
    return other
