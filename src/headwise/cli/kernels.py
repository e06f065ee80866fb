"""`headwise explain`: which kernel would run for given sizes, and why not the others."""

from __future__ import annotations

import torch

from headwise.attention import explain
from headwise.cli.errors import UserError
from headwise.masks import Causal, Window, all_of

MOST = 2**20
MOST_TOKENS = 2**24  # each has a position, which is a number in memory
DEVICES = ("cpu", "cuda", "mps", "xpu")
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
    sizes = {"batch": batch, "length": length, "heads": heads, "d-k": d_k}
    others = {"memory-length": memory_length, "kv-heads": kv_heads, "d-v": d_v}
    sizes |= {name: size for name, size in others.items() if size is not None}
    for name, size in sizes.items():
        most = MOST_TOKENS if name.endswith("length") else MOST
        if size < 1:
            raise UserError(f"--{name} {size} must be at least 1")
        if size > most:
            raise UserError(f"--{name} {size} is more than the {most:,} that can be asked about: give less")
    # what torch counts in 64 bits
    if batch * max(heads, kv_heads or 1) * max(length, memory_length or 1) * max(d_k, d_v or 1) >= 2**62:
        raise UserError("these sizes make a tensor of more than 2^62 numbers: give smaller ones")
    check_device(device)
    if dtype not in DTYPES:
        raise UserError(f"--dtype {dtype}: choose one of {', '.join(DTYPES)}")
    if window is not None and window < 0:
        raise UserError(f"--window {window} must be 0 or more: the number of tokens before each one")
    keys = length if memory_length is None else memory_length
    groups = heads if kv_heads is None else kv_heads
    mask = all_of(Causal() if causal else None, None if window is None else Window(before=window, after=0))
    try:
        one = torch.zeros((), dtype=DTYPES[dtype], device=device, requires_grad=grad)
        q = one.expand(batch, heads, length, d_k)  # one number in memory, whatever the sizes
        k = one.expand(batch, groups, keys, d_k)
        v = one.expand(batch, groups, keys, d_k if d_v is None else d_v)
        return str(explain(q, k, v, mask=mask, softcap=softcap, dropout=dropout))
    except (RuntimeError, TypeError, ValueError) as error:
        raise UserError(str(error).partition("\n")[0]) from None


def check_device(name: str) -> None:
    """Is there such a device?

    Raises:
        UserError: no device of this name, or none in this machine.
    """
    kind, _, number = name.partition(":")
    if kind not in DEVICES or (number and not number.isdecimal()):
        raise UserError(f"--device {name}: choose one of {', '.join(DEVICES)}")
    try:
        torch.zeros((), device=name)
    # of a missing device torch says so by either
    except (AssertionError, RuntimeError):
        raise UserError(
            f"--device {name}: torch finds no such device in this machine, and which kernel runs "
            "depends on it: ask there, or choose --device cpu"
        ) from None
