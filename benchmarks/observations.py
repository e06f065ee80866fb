"""What it costs to look: every statistic of every head, beside the whole weight matrix and not looking.

Claims: below 150 MiB at 8192, forward included; from 2048 on, statistics of queries for a tenth of the
output's time, and those of keys too in at most 1.7 times that time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

import headwise as hw
from benchmarks import forward
from benchmarks.common import Case, Way
from benchmarks.module import bert_attention, headwise_layer
from benchmarks.program import Program, Result, main
from benchmarks.table import Claim

HEADS, WIDTH, TOP, CELLS = 8, 64, 8, 64
LIMIT = 150  # MiB
TIMES = {"queries": 1.1, "queries and keys": 1.7}  # the time of the output alone, from length LONG on
LONG = 2048
LENGTHS = {"quick": (32,), "short": (512, 2048), "full": (128, 512, 1024, 2048, 4096, 8192)}


def observers() -> list[hw.Observer]:
    """All of them but `Weights`, which is the whole matrix."""
    return [
        hw.Entropy(),
        hw.LogSumExp(),
        hw.Distance(),
        hw.Spread(),
        hw.MaxWeight(),
        hw.TopKeys(TOP),
        hw.KeyMass(),
        hw.Map(CELLS),
        hw.Offset(-1),
        hw.Mass([0]),
    ]


def some_observers(what: str) -> list[hw.Observer]:
    """Those of "queries" (one number or two of each), or of "queries and keys": all but `TopKeys`."""
    left_out = (hw.TopKeys,) if what == "queries and keys" else (hw.TopKeys, hw.KeyMass, hw.Map)
    return [one for one in observers() if not isinstance(one, left_out)]


def by_hand(weights: torch.Tensor, scores: torch.Tensor) -> list[torch.Tensor]:
    """The same statistics, as one writes them who has the matrix [B, H, q_len, k_len]."""
    length = weights.shape[-1]
    place = torch.arange(length, dtype=weights.dtype)
    mean = weights @ place
    top, most = weights.topk(min(TOP, length), -1), weights.max(-1)
    cells = torch.nn.functional.adaptive_avg_pool2d(weights, min(CELLS, length))
    return [
        torch.special.entr(weights).sum(-1),
        scores.logsumexp(-1),
        (weights * (place - place[:, None]).abs()).sum(-1),
        weights @ place.square() - mean.square(),
        *most,
        *top,
        weights.sum(-2),
        cells,
        weights.diagonal(-1, -2, -1),
        weights[..., 0],
    ]


def of_function(length: int) -> list[Way]:
    torch.manual_seed(13)
    q, k, v = (torch.randn(1, HEADS, length, WIDTH) for _ in range(3))

    def whole(_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.softmax(torch.matmul(q, k.mT) * WIDTH**-0.5, -1)
        return weights @ v, weights

    def whole_and_more(_: Any) -> Any:
        scores = torch.matmul(q, k.mT) * WIDTH**-0.5
        weights = torch.softmax(scores, -1)
        return weights @ v, by_hand(weights, scores)

    return [
        Way("headwise", lambda _: hw.attention(q, k, v, observe=observers())),
        Way("without looking", lambda _: hw.attention(q, k, v)),
        Way("whole matrix", whole),
        Way("matrix + the same", whole_and_more),
    ]


def beside_sdpa(made: Callable[[], list[hw.Observer]], length: int, *, causal: bool = False) -> list[Way]:
    """What some observers cost, beside the output alone, headwise's and torch's."""
    (q, k, v), runs = forward.runs(length, 1, torch.float32, causal, grad=False)
    mask = hw.Causal() if causal else None
    return [
        Way("headwise", lambda _: hw.attention(q, k, v, mask=mask, observe=made())),
        Way("without looking", runs["headwise"]),
        Way("SDPA", runs["SDPA"]),
    ]


def of_layer(length: int) -> list[Way]:
    torch.manual_seed(13)
    x = torch.randn(1, length, HEADS * WIDTH)
    layer = headwise_layer(HEADS * WIDTH, HEADS).eval()
    found = [
        Way("headwise", lambda _: _no_grad(layer, x, observe=observers())),
        Way("without looking", lambda _: _no_grad(layer, x)),
    ]
    bert = bert_attention(HEADS * WIDTH, HEADS, "eager")
    if bert is not None:
        eager = bert.eval()
        found.append(Way("Bert, output_attentions", lambda _: _no_grad(eager, x)))
    return found


@torch.no_grad()
def _no_grad(module: nn.Module, *given: Any, **options: Any) -> Any:
    return module(*given, **options)


def cases(size: str) -> list[Case]:
    found = [_case("function", of_function, length) for length in LENGTHS[size]]
    for what in TIMES:
        made = functools.partial(some_observers, what)
        found += [
            Case((what, str(length)), functools.partial(beside_sdpa, made, length))
            for length in LENGTHS[size]
        ]
    return found + [_case("layer", of_layer, length) for length in LENGTHS[size]]


def _case(what: str, ways: Any, length: int) -> Case:
    return Case((what, str(length)), lambda: ways(length), weigh=True)


def claims(results: Sequence[Result]) -> list[Claim]:
    function = [r for r in results if r.label[0] == "function" and r.mib]
    heavy = tuple(f"{r.label[1]} ({r.mib['headwise']:.0f})" for r in function if r.mib["headwise"] >= LIMIT)
    found = [Claim(f"the function, observed, needs less than {LIMIT} MiB", len(function), heavy)]
    for what, most in TIMES.items():
        rows = [r for r in results if r.label[0] == what and int(r.label[1]) >= LONG]
        slow = tuple(
            f"{r.label[1]} ({ratio:.2f})" for r in rows if (ratio := r.ratios["without looking"]) > most
        )
        text = f"statistics of {what} take at most {most} times the output's time from {LONG} on"
        found.append(Claim(text, len(rows), slow))
    return found


PROGRAM = Program(
    "observations",
    f"statistics of {HEADS} heads of {WIDTH}, float32",
    ("of", "length"),
    cases,
    split=True,
    peers=("without looking", "SDPA", "whole matrix", "matrix + the same", "Bert, output_attentions"),
    claims=claims,
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
