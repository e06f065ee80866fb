"""The function beside torch's fused one: what do checks, rules and the choice of a kernel cost?

Claim: at most 5 % over F.scaled_dot_product_attention from 512 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

import headwise as hw
from benchmarks.common import Case, Way, forward_and_backward
from benchmarks.program import Program, Result, main
from benchmarks.table import Claim

HEADS, WIDTH = 8, 64
TOKENS = 512  # per call: shorter sequences come in batches
LENGTHS = {
    "quick": (16, 32),
    "short": (128, 512, 2048),
    "full": (128, 256, 512, 1024, 2048, 4096, 8192),
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


Run = Callable[[object], torch.Tensor]


def runs(
    length: int, batch: int, dtype: torch.dtype, causal: bool, *, grad: bool
) -> tuple[tuple[torch.Tensor, ...], dict[str, Run]]:
    """(q, k, v), and each library's function of them by its name."""
    torch.manual_seed(7)
    q, k, v = (torch.randn(batch, HEADS, length, WIDTH, dtype=dtype, requires_grad=grad) for _ in range(3))
    mask = hw.Causal() if causal else None

    def ours(given: object) -> torch.Tensor:
        return hw.attention(q, k, v, mask=mask)

    def torchs(given: object) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return (q, k, v), {"headwise": ours, "SDPA": torchs}


def ways(length: int, batch: int, dtype: torch.dtype, causal: bool, *, backward: bool) -> list[Way]:
    sources, found = runs(length, batch, dtype, causal, grad=backward)
    return [Way(name, forward_and_backward(run, sources) if backward else run) for name, run in found.items()]


def cases(size: str, *, backward: bool = False) -> list[Case]:
    tokens = TOKENS if size != "quick" else 32
    return [
        _case(length, name, dtype, causal, tokens, backward)
        for name, dtype in DTYPES.items()
        for causal in (False, True)
        for length in LENGTHS[size]
    ]


def _case(length: int, name: str, dtype: torch.dtype, causal: bool, tokens: int, backward: bool) -> Case:
    batch = max(1, tokens // length)
    label = (name, "causal" if causal else "full", str(length), str(batch))
    return Case(label, lambda: ways(length, batch, dtype, causal, backward=backward))


def claims(results: Sequence[Result]) -> list[Claim]:
    long = [r for r in results if int(r.label[2]) >= 512]
    missed = tuple(
        f"{' '.join(r.label[:3])} ({r.ratios['SDPA']:.2f})" for r in long if r.ratios["SDPA"] > 1.05
    )
    return [Claim("at most 5 % over SDPA from length 512 on", len(long), missed)]


LABELS = ("dtype", "mask", "length", "batch")
PROGRAM = Program(
    "forward", f"forward, {HEADS} heads of {WIDTH}", LABELS, cases, peers=("SDPA",), claims=claims
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
