"""From which size on is oneDNN's float32 product faster than the one that torch takes? Prints the ratios by
which multihead/projections.py was told.

    python -m benchmarks.projections

Both run in turn on one thread, by that thread's CPU time; a ratio is the median over rounds.
"""

from __future__ import annotations

import statistics
import time

import torch
import torch.nn.functional as F

from headwise.multihead.projections import processor

ROUNDS = 15
# (rows, in, out)
SIZES = [
    *((rows, 512, 512) for rows in (16, 32, 64, 128, 256, 1024, 2048)),
    *((64, 64, 64), (256, 256, 256), (1024, 512, 2048), (2048, 768, 768), (512, 1024, 1024)),
]


def main() -> None:
    torch.set_num_threads(1)
    print(f"processor {processor()}, torch {torch.__version__}")
    for rows, inner, outer in sorted(SIZES, key=lambda size: size[0] * size[1] * size[2]):
        x, weight, bias = torch.randn(rows, inner), torch.randn(outer, inner), torch.randn(outer)
        repeats = max(1, 10_000_000 // (rows * inner * outer))

        def usual(given: tuple[torch.Tensor, ...] = (x, weight, bias)) -> None:
            F.linear(*given)

        def onednn(given: tuple[torch.Tensor, ...] = (x, weight, bias)) -> None:
            torch.ops.mkldnn._linear_pointwise(*given, "none", [], "")

        ratios = []
        for call in (usual, onednn):
            call()
        for _ in range(ROUNDS):
            times = []
            for call in (usual, onednn):
                start = time.thread_time()
                for _ in range(repeats):
                    call()
                times.append(time.thread_time() - start)
            ratios.append(times[0] / times[1])
        work, ratio = rows * inner * outer, statistics.median(ratios)
        print(f"{rows:5} x {inner:4} x {outer:4}  {work:13,} multiplications: {ratio:.2f}x as fast")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
