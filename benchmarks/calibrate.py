"""From which size on is the compiled kernel faster than torch's fused operation? Writes the table by which
`kernel="auto"` chooses between them.

    python -m benchmarks.calibrate            prints the rows for kernels/native_table.py
    python -m benchmarks.calibrate avx2       of some instruction sets alone

Sizes grow by twice; both ways run in turn on one thread, by that thread's CPU time, as `attention` is called
without gradients. A row is the least number of multiplications from which on the compiled kernel takes at
most as long at every size, by the median of ratios within a round, with and without a causal mask.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch

import headwise as hw
from headwise.kernels.direct import direct
from headwise.kernels.native_build import native
from headwise.kernels.native_call import forward_plain
from headwise.kernels.native_table import FEW, multiplications

WIDTH = 64
ROUNDS = 9
SAMPLE = 0.002  # seconds of one sample, made of many calls where they are short
# (batch, heads, queries, keys)
MANY = [(1, 1, 16, 16), *((1, 8, n, n) for n in (16, 24, 32, 48, 64, 96, 128, 256, 512))]
FEW_QUERIES = [(1, 8, 1, n) for n in (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 8192)] + [(8, 8, 1, 2048)]
GROUPS = 4  # query heads that share a key, in rows of grouped heads


def main() -> None:
    if native is None:
        raise SystemExit("headwise was built without its compiled kernel: there is nothing to calibrate")
    torch.set_num_threads(1)
    asked = sys.argv[1:]
    used = native.isa()
    for isa, here in native.builds():
        if not here or (asked and isa not in asked):
            continue
        native.use_isa(isa)
        for dtype in (torch.float32, torch.bfloat16):
            kinds = (("many", MANY, 1), ("few", FEW_QUERIES, 1), ("few, grouped", FEW_QUERIES, GROUPS))
            for queries, sizes, groups in kinds:
                least = _faster_from(sizes, dtype, groups)
                name = str(dtype).removeprefix("torch.")
                said = "never" if least is None else f"{least:_}"
                print(f'    ("{isa}", "{name}", "{queries}"): {said},', flush=True)
    native.use_isa(used)


def _faster_from(sizes: list[tuple[int, int, int, int]], dtype: torch.dtype, groups: int) -> int | None:
    least = None
    for work, ratio in sorted(_ratios(sizes, dtype, groups)):
        print(
            f"      # {work:>14,} multiplications: {ratio:.2f}x the time of torch",
            file=sys.stderr,
            flush=True,
        )
        if ratio > 1:
            least = None
        elif least is None:
            least = work
    return least


def _ratios(
    sizes: list[tuple[int, int, int, int]], dtype: torch.dtype, groups: int
) -> Iterator[tuple[int, float]]:
    for batch, heads, q_len, k_len in sizes:
        q = torch.randn(batch, heads, q_len, WIDTH).to(dtype)
        k, v = (torch.randn(batch, heads // groups, k_len, WIDTH).to(dtype) for _ in range(2))
        worst = 0.0
        for causal in (False, True) if q_len >= FEW else (False,):
            ahead, scale = (k_len - q_len if causal else None), WIDTH**-0.5
            ours = _repeated(lambda a=ahead, s=scale: forward_plain(q, k, v, s, a))  # noqa: B023
            if groups == 1:  # by the way that a call without options takes
                theirs = _repeated(lambda c=causal, s=scale: direct(q, k, v, s, None, causal=c))  # noqa: B023
            else:
                theirs = _repeated(lambda: hw.attention(q, k, v, kernel="torch"))  # noqa: B023
            pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
            worst = max(worst, statistics.median(mine / other for mine, other in pairs))
        yield multiplications(q.shape, v.shape), worst


def _repeated(call: Callable[[], object]) -> Callable[[], float]:
    """Seconds of one call, by as many as make a sample."""
    call()
    start = time.thread_time()
    call()
    count = max(1, round(SAMPLE / max(1e-7, time.thread_time() - start)))

    def sample() -> float:
        start = time.thread_time()
        for _ in range(count):
            call()
        return (time.thread_time() - start) / count

    return sample


if __name__ == "__main__":
    with torch.inference_mode():
        main()
