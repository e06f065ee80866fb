"""From which size on the compiled kernel is faster than torch's fused operation: measured, not guessed.

Written by `python -m benchmarks.calibrate`. Sizes are multiplications of a forward pass that a causal mask
doesn't halve: batch x heads x q_len x k_len x (d_k + d_v). Below, a call's fixed cost decides, and torch's
is lower. An instruction set that is not here was not measured (or is never faster), and leaves to torch
what torch takes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

FEW = 16  # queries: fewer are a step of decoding, which is bound by memory

# (instruction set, dtype, queries): multiplications from which on it is faster
# (AMD EPYC family 25 with AVX-512, torch 2.13, one thread)
FASTER_FROM: dict[tuple[str, str, str], int] = {
    ("avx2", "float32", "many"): 32_768,
    ("avx2", "float32", "few"): 1_024,
    ("avx2", "float32", "few, grouped"): 1_024,
    ("avx2", "bfloat16", "many"): 32_768,
    ("avx2", "bfloat16", "few"): 1_024,
    ("avx2", "bfloat16", "few, grouped"): 1_024,
    ("avx512", "float32", "many"): 32_768,
    ("avx512", "float32", "few"): 1_024,
    ("avx512", "float32", "few, grouped"): 1_024,
    ("avx512", "bfloat16", "many"): 32_768,
    ("avx512", "bfloat16", "few"): 1_024,
    ("avx512", "bfloat16", "few, grouped"): 1_024,
    ("avx512bf16", "float32", "many"): 32_768,
    ("avx512bf16", "float32", "few"): 1_024,
    ("avx512bf16", "float32", "few, grouped"): 1_024,
    ("avx512bf16", "bfloat16", "many"): 32_768,
    ("avx512bf16", "bfloat16", "few"): 1_024,
    ("avx512bf16", "bfloat16", "few, grouped"): 1_024,
}


def multiplications(q: Sequence[int], v: Sequence[int]) -> int:
    """Those of a forward pass over q [B, H, q_len, d_k] and v [B, Hk, k_len, d_v]."""
    return q[0] * q[1] * q[2] * v[2] * (q[3] + v[3])


def slower_than_torch(isa: str, dtype: torch.dtype, q_len: int, groups: int, work: int) -> str | None:
    """Why torch's fused operation is the better choice for a call of `work` multiplications that both take;
    None if it isn't. `groups`: how many query heads share a key."""
    least = faster_from(isa, dtype, kind(q_len, groups))
    if least is None:
        return f"'torch' is faster than its {isa} build"
    if work < least:
        return f"'torch' is faster below {least:,} multiplications, and this is {work:,}"
    return None


@functools.lru_cache(maxsize=64)
def faster_from(isa: str, dtype: torch.dtype, queries: str) -> int | None:
    """Multiplications from which on it is faster than torch; None: never, or not measured."""
    return FASTER_FROM.get((isa, str(dtype).removeprefix("torch."), queries))


def kind(q_len: int, groups: int) -> str:
    """The kind of queries, as the table names them."""
    if q_len >= FEW:
        return "many"
    return "few" if groups == 1 else "few, grouped"


def beside_torch(isa: str) -> str:
    """When `kernel="auto"` takes it, in words."""
    known = {key[1:]: least for key, least in FASTER_FROM.items() if key[0] == isa}
    if not known:
        return f"takes it only where 'torch' refuses: its {isa} build was not measured to be faster"
    rows = "; ".join(
        f"{queries} queries in {dtype} from {least:,}" for (dtype, queries), least in known.items()
    )
    return f"takes it where 'torch' refuses, and by the number of multiplications: {rows}"
