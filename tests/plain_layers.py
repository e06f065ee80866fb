"""A layer of sizes that are all different primes, and numbers for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.multihead import MultiHeadAttention

# A different prime for every size: no two can be mixed up unnoticed.
BATCH, L, S = 2, 19, 23
Q_IN, K_IN, V_IN, OUT, D_K, D_V, HEADS = 3, 5, 7, 11, 13, 17, 6
F64 = torch.float64


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def build(**options: Any) -> MultiHeadAttention:
    torch.manual_seed(1)
    sizes = {"input_dim": Q_IN, "output_dim": OUT, "d_k": D_K, "d_v": D_V, "dtype": F64}
    module = MultiHeadAttention(29, HEADS, **{**sizes, **options})
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(("bias", "sinks")) or "norm" in name:
                parameter.normal_()
    return module
