"""Where the time of an observed call goes: the kernel, the check of a few rows, Python. Prints milliseconds
of one thread, and what each part is of the output's time.

    python -m benchmarks.parts [LENGTH]

Calls of the compiled kernel are made in turn with whole calls, so that they find the caches as these leave
them.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

import headwise as hw
from benchmarks.forward import HEADS, WIDTH
from benchmarks.native import OF_ROWS
from headwise.attention import problem
from headwise.kernels.native_build import MISSING, native
from headwise.kernels.native_call import Told, check_rows, forward
from headwise.kernels.native_observe import forward_observed

ROUNDS = 41
CHECKED = 4  # rows, as of calls of this size


def main(length: int) -> None:
    torch.set_num_threads(1)
    q, k, v = (torch.randn(1, HEADS, length, WIDTH) for _ in range(3))
    given = problem(q, k, v)
    told = Told(given)
    lse = forward(given)[1]
    ways: dict[str, Callable[[], object]] = {
        "call": lambda: hw.attention(q, k, v),
        "call, observed": lambda: hw.attention(q, k, v, observe=list(OF_ROWS)),
        "kernel": lambda: forward(given, None, told),
        "kernel and results": lambda: forward_observed(given, OF_ROWS, (1,)),
        "check": lambda: check_rows(told, lse, CHECKED),
    }
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.thread_time()
            way()
            samples[name].append(time.thread_time() - start)
    print(
        f"{HEADS} heads of {WIDTH}, length {length}, float32, statistics of queries: time, share of a call's"
    )
    for name, seconds in samples.items():
        ratio = statistics.median(x / y for x, y in zip(seconds, samples["call"], strict=True))
        print(f"{name:20} {statistics.median(seconds) * 1e3:8.3f} ms  {ratio:6.3f}")


if __name__ == "__main__":
    if native is None:
        raise SystemExit(MISSING)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)
