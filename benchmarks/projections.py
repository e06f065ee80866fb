"""From which size on are oneDNN's float32 products faster than those that torch takes? Prints the ratios by
which multihead/projections.py was told: for a linear's output, for the gradients of its input and of its
weight.

    python -m benchmarks.projections [--threads N]

Both run in turn; a ratio is the median over rounds. One thread is timed by its CPU time, several by what
passes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.multihead.projections import processor

ROUNDS = 15
AT_ONCE = 1 << 25  # multiplications in a sample: of less, the clock would be measured
ROWS, WIDTHS, OUTER = (64, 128, 256, 512, 1920), (64, 128, 256, 512), (1, 4)
# (rows, in, out)
SIZES = [
    *((rows, width, width * times) for rows in ROWS for width in WIDTHS for times in OUTER),
    *((rows, 4 * width, width) for rows in ROWS for width in WIDTHS),
    *((rows, 512, 512) for rows in (16, 32)),
    *((1920, width, 4000) for width in WIDTHS),
]

Product = Callable[[], Tensor]


def onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


def products(rows: int, inner: int, outer: int) -> dict[str, tuple[Product, Product]]:
    """Torch's way and oneDNN's: y = x W^T + b, dx = dy W, dW = dy^T x."""
    x, d_y = torch.randn(rows, inner), torch.randn(rows, outer)
    weight, bias = torch.randn(outer, inner), torch.randn(outer)
    return {
        "y": (lambda: F.linear(x, weight, bias), lambda: onednn(x, weight, bias)),
        "dx": (lambda: d_y.mm(weight), lambda: onednn(d_y, weight.t())),
        "dW": (lambda: d_y.t().mm(x), lambda: onednn(d_y.t(), x.t())),
    }


def times_as_fast(ways: tuple[Product, Product], repeats: int, clock: Callable[[], float]) -> float:
    """How many times as fast as the first the second is."""
    for way in ways:
        way()
    ratios = []
    for _ in range(ROUNDS):
        times = []
        for way in ways:
            start = clock()
            for _ in range(repeats):
                way()
            times.append(clock() - start)
        ratios.append(times[0] / times[1])
    return statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    print(f"processor {processor()}, torch {torch.__version__}, threads {threads}")
    print(f"{'rows':>5}   {'in':>4}   {'out':>4} {'multiplications':>16}   oneDNN's y, dx, dW: times as fast")
    for rows, inner, outer in sorted(SIZES, key=lambda size: (size[0] * size[1] * size[2], size)):
        work = rows * inner * outer
        ratios = (
            times_as_fast(ways, max(1, AT_ONCE // work), clock)
            for ways in products(rows, inner, outer).values()
        )
        print(f"{rows:5} x {inner:4} x {outer:4} {work:16,}   {'  '.join(f'{one:.2f}' for one in ratios)}")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
