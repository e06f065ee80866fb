"""`headwise explain`: which kernel would run for given sizes, and why not the others."""

from __future__ import annotations

from typing import Any

import torch

from headwise.attention import explain
from headwise.cli.errors import UserError
from headwise.masks import Causal, Window, all_of

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


def explain_sizes(
    *,
    batch: int,
    length: int,
    memory_length: int | None,
    heads: int,
    kv_heads: int | None,
    d_k: int,
    d_v: int | None,
    dtype: str,
    device: str,
    causal: bool,
    window: int | None,
    softcap: float | None,
    dropout: float,
    grad: bool,
) -> str:
    """What `explain` says of a call of these sizes. Nothing is computed.

    Raises:
        UserError: an unknown dtype or device, sizes that don't fit.
    """
    if dtype not in DTYPES:
        raise UserError(f"--dtype {dtype}: choose one of {', '.join(DTYPES)}")
    if window is not None and window < 0:
        raise UserError(f"--window {window} must be 0 or more: the number of tokens before each one")
    keys = length if memory_length is None else memory_length
    groups = heads if kv_heads is None else kv_heads
    mask = all_of(Causal() if causal else None, None if window is None else Window(before=window, after=0))
    place: dict[str, Any] = {"dtype": DTYPES[dtype], "device": device, "requires_grad": grad}
    try:
        q = torch.empty(batch, heads, length, d_k, **place)
        k = torch.empty(batch, groups, keys, d_k, **place)
        v = torch.empty(batch, groups, keys, d_k if d_v is None else d_v, **place)
        return str(explain(q, k, v, mask=mask, softcap=softcap, dropout=dropout))
    # Of a missing device torch says so by an AssertionError or a RuntimeError.
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(str(error).partition("\n")[0]) from None
