"""What the compiled kernel reaches, each number beside what is aimed at: times as fast as the peer, % of the
CPU's peak, % of its memory's bandwidth, error and memory.

Peak and bandwidth are measured in the same rounds (limits.py). Operations are those that are of use: forward
2 (d_k + d_v) for each pair of query and key that the mask allows (of a random mask: each pair), backward 2.5
times as many, linears 2 for each product. So a row that computes what a mask hides loses by it.

Aims come from a processor whose AVX-512 units are twice as wide (docs/benchmarks.md).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

import headwise as hw
from benchmarks import forward, native_models, observations, options
from benchmarks.aims import Aim, HeldProgram, Row, bandwidth, claims, products, times_as_fast, times_the_time
from benchmarks.common import Case, Way
from benchmarks.exactness import GRADIENTS, OUTPUT, errors
from benchmarks.forward import DTYPES, HEADS, WIDTH
from benchmarks.limits import peak, reading
from benchmarks.program import Result, main

LENGTHS = {"quick": (16,), "short": (512, 2048), "full": (512, 2048, 8192)}
SHORT, SHORT_BATCH = 128, 8
MASKS = (False, True)  # causal
BACKWARD = 2.5  # of the operations forward
KV_HEADS, DECODED = 2, 8  # heads of keys, and sequences
KEYS = {"quick": (32,), "short": (2048, 8192), "full": (2048, 8192, 32768)}
LIMIT = 40  # MiB


def pairs(length: int, causal: bool) -> float:
    """Of a query and a key that it may attend to."""
    return length * (length + 1) / 2 if causal else float(length**2)


def named(dtype: str, causal: bool) -> str:
    return f"{dtype}, {'causal' if causal else 'full'}"


def forward_rows(size: str) -> list[Row]:
    """float32 2.4 times (causal 2.6) and 75 % (65 %), bfloat16 4.4 times and 60 %; at 128 2 times."""
    faster = {
        ("float32", False): 2.4,
        ("float32", True): 2.6,
        ("bfloat16", False): 4.4,
        ("bfloat16", True): 4.4,
    }
    shares = {("float32", False): 75, ("float32", True): 65, ("bfloat16", False): 60, ("bfloat16", True): 60}
    found = []
    for kind in faster:
        found.append(_forward(*kind, min(SHORT, LENGTHS[size][0]), SHORT_BATCH, 2.0, None))
        found += [_forward(*kind, length, 1, faster[kind], shares[kind]) for length in LENGTHS[size]]
    return found


def _forward(dtype: str, causal: bool, length: int, batch: int, faster: float, share: float | None) -> Row:
    flops = 4 * batch * HEADS * WIDTH * pairs(length, causal)
    return Row(
        ("forward", named(dtype, causal), str(length), str(batch)),
        lambda: [
            *forward.ways(length, batch, DTYPES[dtype], causal, backward=False),
            *peak(DTYPES[dtype]),
        ],
        aims=(times_as_fast("SDPA", faster), *products(flops, DTYPES[dtype], share, "SDPA")),
    )


def backward_rows(size: str) -> list[Row]:
    """Gradients alone: float32 2.2 times, bfloat16 3 times."""
    return [
        Row(
            ("backward", named(dtype, causal), str(length), "1"),
            partial(_backward, dtype, causal, length),
            aims=(
                times_as_fast("SDPA", faster),
                *products(BACKWARD * 4 * HEADS * WIDTH * pairs(length, causal), DTYPES[dtype], peer="SDPA"),
            ),
        )
        for dtype, faster in (("float32", 2.2), ("bfloat16", 3.0))
        for causal in MASKS
        for length in LENGTHS[size]
    ]


def _backward(dtype: str, causal: bool, length: int) -> list[Way]:
    sources, runs = forward.runs(length, 1, DTYPES[dtype], causal, grad=True)

    def graph(run: forward.Run) -> tuple[torch.Tensor, torch.Tensor]:
        out = run(None)
        return out, torch.ones_like(out)

    def gradients(given: tuple[torch.Tensor, torch.Tensor]) -> Any:
        return torch.autograd.grad(given[0], sources, given[1], retain_graph=True)

    ways = [Way(name, gradients, partial(graph, run)) for name, run in runs.items()]
    return ways + peak(DTYPES[dtype])


def option_rows(size: str) -> list[Row]:
    """2 times; dropout and d_v = 2 d_k, for which torch holds the whole matrix, 5 times."""
    length = options.LENGTHS[size]
    every = 4 * HEADS * WIDTH * length**2
    real = float(options.real_lengths(length).sum())
    aims = {
        "any mask": (2.0, every),
        "bias": (2.0, every),
        "key lengths": (2.0, 4 * HEADS * WIDTH * length * real),
        "dropout 0.1": (5.0, every),
        "d_v = 2 d_k": (5.0, every * 3 / 2),
    }
    return [
        Row(
            ("options", name, str(length), "3" if name == "key lengths" else "1"),
            partial(_option, name, length),
            aims=(times_as_fast("torch", faster), *products(flops, torch.float32, peer="torch")),
        )
        for name, (faster, flops) in aims.items()
    ]


def _option(name: str, length: int) -> list[Way]:
    return options.ways(options.OPTIONS[name], length, backward=False) + peak(torch.float32)


def window_rows(size: str) -> list[Row]:
    """A window of 512 at 8192: 6 times as fast as all keys."""
    length, width = {"quick": (32, 8), "short": (2048, 512), "full": (8192, 512)}[size]
    useful = 4 * HEADS * WIDTH * (width * length - width * (width - 1) / 2)

    def ways() -> list[Way]:
        x, window = options.inputs(length), hw.Window(width - 1, 0)
        found = [Way("headwise", lambda _: x.ours(mask=window)), Way("full", lambda _: x.ours())]
        return found + peak(torch.float32)

    aims = (times_as_fast("full", 6.0 if size == "full" else None), *products(useful, torch.float32))
    return [Row(("window", f"float32, {width} keys", str(length), "1"), ways, aims=aims)]


def decode_rows(size: str) -> list[Row]:
    """One query over many keys: 1.5 times, and 80 % of the bandwidth of merely reading them."""
    return [
        Row(
            ("decoding", f"{dtype}, {KV_HEADS} kv heads", str(length), str(DECODED)),
            partial(_decode, DTYPES[dtype], length),
            aims=(
                times_as_fast("SDPA", 1.5),
                *bandwidth(2 * DECODED * KV_HEADS * length * WIDTH * DTYPES[dtype].itemsize, 80),
            ),
        )
        for dtype in DTYPES
        for length in KEYS[size]
    ]


def _decode(dtype: torch.dtype, length: int) -> list[Way]:
    torch.manual_seed(19)
    q = torch.randn(DECODED, HEADS, 1, WIDTH, dtype=dtype)
    k, v = (torch.randn(DECODED, KV_HEADS, length, WIDTH, dtype=dtype) for _ in range(2))
    return [
        Way("headwise", lambda _: hw.attention(q, k, v, mask=hw.Causal())),
        Way("SDPA", lambda _: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)),
        *reading((k, v)),
    ]


OF_ROWS = (hw.Entropy(), hw.Distance(), hw.MaxWeight(), hw.LogSumExp(), hw.Offset(-1))


def statistic_rows(size: str) -> list[Row]:
    """Those of each query at most 1.08 times the output alone; all, with keys and map, at most 1.6 times, and
    faster than SDPA without any."""
    found = []
    for causal in MASKS:
        for length in LENGTHS[size]:
            every = (times_the_time("without looking", 1.6), times_as_fast("SDPA", 1.0))
            for name, made, aims in (
                ("of queries", lambda: list(OF_ROWS), (times_the_time("without looking", 1.08),)),
                ("all ten", observations.observers, every),
            ):
                label = ("statistics", f"{name}, {'causal' if causal else 'full'}", str(length), "1")
                found.append(
                    Row(label, partial(observations.beside_sdpa, made, length, causal=causal), aims=aims)
                )
    return found


def error_rows(size: str) -> list[Row]:
    """No further from float64 than SDPA."""
    length = {"quick": 16, "short": 512, "full": 2048}[size]
    return [
        Row(
            ("error", f"{what}, {named(dtype, causal)}, spread {spread:g}", str(length), "1"),
            list,
            clock=False,
            aims=(
                Aim("error", partial(_error, what, "headwise", *kind), form=".2e"),
                Aim("SDPA's error", partial(_error, what, "SDPA", *kind), form=".2e"),
                Aim("times SDPA's", partial(_more_error, what, *kind), most=1.0),
            ),
        )
        for what in (OUTPUT, GRADIENTS)
        for dtype in DTYPES
        for causal in MASKS
        for spread in (1.0, 3.0)
        for kind in [(length, dtype, causal, spread)]
    ]


def _error(what: str, whose: str, length: int, dtype: str, causal: bool, spread: float, _: Result) -> float:
    return errors(length, dtype, causal, spread)[what, whose]


def _more_error(what: str, length: int, dtype: str, causal: bool, spread: float, _: Result) -> float:
    found = errors(length, dtype, causal, spread)
    return found[what, "headwise"] / found[what, "SDPA"]


def memory_rows(size: str) -> list[Row]:
    """Below 40 MiB at 8192, the output (16 MiB) and all statistics included."""
    length = {"quick": 16, "short": 2048, "full": 8192}[size]
    aims = (
        Aim("MiB", lambda r: r.mib.get("headwise"), most=LIMIT, form=".0f"),
        Aim("SDPA, MiB", lambda r: r.mib.get("SDPA"), form=".0f"),
    )
    return [
        Row(
            ("memory", name, str(length), "1"),
            partial(observations.beside_sdpa, made, length),
            clock=False,
            weigh=True,
            aims=aims,
        )
        for name, made in (("output", list), ("output and all ten statistics", observations.observers))
    ]


def cases(size: str) -> list[Case]:
    parts = (
        forward_rows,
        backward_rows,
        option_rows,
        window_rows,
        decode_rows,
        statistic_rows,
        native_models.layer_rows,
        native_models.training_rows,
        error_rows,
        memory_rows,
    )
    return [row for part in parts for row in part(size)]


PROGRAM = HeldProgram(
    "native",
    f"the compiled kernel and its aims, {HEADS} heads of {WIDTH}",
    ("of", "what", "length", "batch"),
    cases,
    peers=("SDPA", "torch", "torch, tuned", "full", "without looking"),
    claims=claims,
    split=True,
    notes=("in brackets: what is aimed at; peak: of as many threads, by the instruction of the row's type",),
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
