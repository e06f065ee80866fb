"""`headwise trace`: one layer of the asked sizes, run once."""

from __future__ import annotations

import torch

from headwise.cli.errors import UserError
from headwise.masks import Causal
from headwise.multihead import MultiHeadAttention
from headwise.trace import Trace, trace

MOST_NUMBERS = 2**29  # 2 GiB in float32
MOST_FLOPS = 2e12  # about a minute on one core


def trace_layer(
    *,
    batch: int,
    length: int,
    input_dim: int | None,
    d_model: int,
    heads: int,
    kv_heads: int | None,
    memory_length: int | None,
    causal: bool,
) -> Trace:
    """Trace `MultiHeadAttention(d_model, heads)` over random input.

    Raises:
        UserError: a size below 1, sizes that don't fit each other, a run too large to wait for.
    """
    width = d_model if input_dim is None else input_dim
    keys = length if memory_length is None else memory_length
    sizes = {"batch": batch, "length": length, "input-dim": width, "d-model": d_model, "heads": heads}
    if kv_heads is not None:
        sizes["kv-heads"] = kv_heads
    sizes["memory-length"] = keys
    for name, size in sizes.items():
        if size < 1:
            raise UserError(f"--{name} {size} must be at least 1")
    numbers = batch * (length + keys) * (width + 3 * d_model) + 3 * width * d_model + d_model**2
    flops = 2 * batch * d_model * ((length + 2 * keys) * width + length * d_model + 2 * length * keys)
    if numbers > MOST_NUMBERS or flops > MOST_FLOPS:
        raise UserError(
            f"a trace runs the layer; these sizes need {numbers * 4 / 2**30:.1f} GiB and {flops:.0e} FLOPs, "
            f"more than {MOST_NUMBERS * 4 / 2**30:.0f} GiB or {MOST_FLOPS:.0e} FLOPs: take a smaller --batch "
            "(every count grows in proportion to it)"
        )
    try:
        layer = MultiHeadAttention(d_model, heads, input_dim=width, num_kv_heads=kv_heads)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    x = torch.randn(batch, length, width)
    memory = () if memory_length is None else (torch.randn(batch, keys, width),)
    return trace(layer, x, *memory, mask=Causal() if causal else None)
