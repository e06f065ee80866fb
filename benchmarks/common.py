"""Ways to compute one thing, timed in turn.

Clocks of a busy machine drift by more than the differences that are of interest. So candidates never run
one after the other: every round runs each of them once, in an order drawn anew (else one of them would find
the caches as the slowest one left them, each time), and a ratio is the median over rounds of the ratio
within a round.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

SAMPLE = 0.004  # seconds: shorter calls are repeated within a sample, or the clock would be measured


@dataclass(frozen=True)
class Way:
    """One way to compute a case.

    `prepare` makes what the way needs besides the inputs that it is given (a mask as a matrix, or a mask
    object). A model makes it once for many layers, so its time doesn't count; its memory does.
    """

    name: str
    run: Callable[[Any], Any]
    prepare: Callable[[], Any] | None = None

    def ready(self) -> Any:
        return None if self.prepare is None else self.prepare()


@dataclass(frozen=True)
class Case:
    """One row of a table: some sizes and options, and the ways to compute them.

    `label` holds the row's first cells, and tells it from every other row of its program.
    """

    label: tuple[str, ...]
    ways: Callable[[], list[Way]]  # makes the inputs too: only when the case's turn has come
    clock: bool = True
    weigh: bool = False  # whether memory is measured
    amount: float = 1.0  # of what a call makes (tokens), where the program's unit counts it

    def named(self, names: Sequence[str] | None) -> list[Way]:
        return [way for way in self.ways() if names is None or way.name in names]


@dataclass(frozen=True)
class Timing:
    """Seconds per call of each way, round by round."""

    samples: dict[str, list[float]]

    def seconds(self, name: str) -> float:
        return statistics.median(self.samples[name])

    def ratio(self, name: str, base: str) -> float:
        """How many times the time of `base` it takes."""
        pairs = zip(self.samples[name], self.samples[base], strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)


def time_in_turn(
    ways: Sequence[Way], *, threads: int, budget: float, least: int = 3, most: int = 41
) -> Timing:
    """Time every way in turn, for about `budget` seconds, in `least` to `most` rounds.

    With one thread the clock is that thread's CPU time, which leaves out what other processes take. With
    more it is the time that passes.
    """
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    given = {way.name: way.ready() for way in ways}
    repeats, one_round = {}, 0.0
    for way in ways:
        way.run(given[way.name])  # the first call loads and allocates
        begin = clock()  # the time that passes may be another process's, and the call would look long
        way.run(given[way.name])
        once = max(1e-7, clock() - begin)
        repeats[way.name] = max(1, round(SAMPLE / once))
        one_round += once * repeats[way.name]
    rounds = max(least, min(most, int(budget / one_round)))
    samples: dict[str, list[float]] = {way.name: [] for way in ways}
    orders = random.Random(rounds)  # the same each time
    for _ in range(rounds):
        for way in orders.sample(ways, len(ways)):
            what, times = given[way.name], repeats[way.name]
            begin = clock()
            for _ in range(times):
                way.run(what)
            samples[way.name].append((clock() - begin) / times)
    return Timing(samples)


def forward_and_backward(
    run: Callable[[Any], torch.Tensor], sources: Sequence[torch.Tensor]
) -> Callable[[Any], Any]:
    """`run`, then the gradients of all `sources`, for a fixed gradient of the output."""
    found: list[torch.Tensor] = []

    def both(given: Any) -> Any:
        out = run(given)
        if not found:
            found.append(torch.ones_like(out))
        return torch.autograd.grad(out, sources, found[0])

    return both


def machine() -> list[str]:
    """What a reader needs to know of where the numbers come from."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return [
        f"{_processor()}, {os.cpu_count()} cores, load {load:.1f} at the start",
        f"Python {platform.python_version()}, torch {torch.__version__}, transformers {_transformers()}, "
        f"{platform.system()}",
    ]


def _processor() -> str:
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                name, _, value = line.partition(":")
                facts[name.strip()] = value.strip()
    except OSError:
        return platform.processor() or platform.machine()
    wide = " with AVX-512" if "avx512f" in facts.get("flags", "") else ""
    return facts.get("model name", platform.machine()) + wide


def _transformers() -> str:
    try:
        import transformers
    except ImportError:
        return "not installed"
    return str(transformers.__version__)
