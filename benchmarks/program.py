"""What every benchmark program is: cases, the ways that they are computed, and what is claimed of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import Case, machine, time_in_turn
from benchmarks.memory import extra_mib
from benchmarks.table import Claim, Table, milliseconds, times

LEGEND = "(in brackets: headwise's time / that one's, the median of rounds; below 1 headwise is faster)"
SIZES = ("quick", "short", "full")
BUDGET = {"quick": 0.02, "short": 1.0, "full": 4.0}  # seconds of rounds for each case


@dataclass(frozen=True)
class Result:
    """One row's numbers. Times are in seconds, memory in MiB."""

    label: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)  # headwise's time / the peer's
    mib: dict[str, float] = field(default_factory=dict)
    amount: float = 1.0  # of what a call makes


NOISE = 1.02  # medians of the same code differ by as much


def no_slower(text: str, results: Sequence[Result]) -> Claim:
    """That no peer is faster, in any row, by more than noise."""
    slow = tuple(
        f"{' '.join(r.label)} ({name} {ratio:.2f})"
        for r in results
        for name, ratio in r.ratios.items()
        if ratio > NOISE
    )
    return Claim(text, sum(len(r.ratios) for r in results), slow)


UNITS: dict[str, Callable[[float, float], str]] = {  # of a cell: how many are made in how many seconds
    "ms": lambda amount, seconds: milliseconds(seconds),
    "ms per token": lambda amount, seconds: milliseconds(seconds / amount),
    "tokens/s": lambda amount, seconds: f"{amount / seconds:.0f}",
}


@dataclass(frozen=True)
class Program:
    """One claim's program.

    Attributes:
        name: of its module in `benchmarks`, and of its place in the documentation.
        title: what is measured, in one line.
        labels: headings of the cells that tell rows apart.
        cases: the cases of a size: "quick" (seconds, only to see that it runs), "short" or "full".
        claims: what should be true of the results.
        ours: the way that the others are compared with.
        notes: printed below the tables.
        peers: the others, in the order of the columns. A case may lack some.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    cases: Callable[[str], list[Case]]
    peers: tuple[str, ...]
    claims: Callable[[Sequence[Result]], list[Claim]] = lambda results: []
    ours: str = "headwise"
    notes: tuple[str, ...] = ()
    split: bool = False  # a table for each first label
    unit: str = "ms"  # of `UNITS`

    @property
    def module(self) -> str:
        return f"benchmarks.{self.name}"

    def measure(self, size: str, threads: int, only: str | None = None) -> Iterator[Result]:
        for case in self.cases(size):
            if only is not None and only not in " ".join(case.label):
                continue
            seconds, ratios, mib = {}, {}, {}
            if case.clock:
                timing = time_in_turn(case.ways(), threads=threads, budget=BUDGET[size])
                seconds = {name: timing.seconds(name) for name in timing.samples}
                ratios = {name: timing.ratio(self.ours, name) for name in seconds if name != self.ours}
            if case.weigh and size != "quick":  # a process for each way takes seconds
                for name in [way.name for way in case.ways()]:
                    mib[name] = extra_mib(self.module, case.label, name, size=size, threads=threads)
            if size != "quick":
                print(" ".join(case.label), _summary(ratios), file=sys.stderr, flush=True)
            yield self.result(case, seconds, ratios, mib)

    def result(
        self, case: Case, seconds: dict[str, float], ratios: dict[str, float], mib: dict[str, float]
    ) -> Result:
        return Result(case.label, seconds, ratios, mib, case.amount)

    def tables(self, results: Sequence[Result], threads: int) -> list[Table]:
        """One table, or with `split` one for each first label, in which every column says something."""
        clock = "1 thread, CPU time" if threads == 1 else f"{threads} threads, time that passes"
        groups: dict[str, list[Result]] = {}
        for result in results:
            groups.setdefault(result.label[0] if self.split else "", []).append(result)
        tables = []
        for first, group in groups.items():
            title = f"{self.title}, {first}: {clock}" if first else f"{self.title}: {clock}"
            tables.append(self._table(title, group, self.labels[1 if self.split else 0 :]))
        if tables:
            tables[-1].notes += self.notes
            tables[-1].notes += [f"Claim: {claim}" for claim in self.claims(results)]
        return tables

    def _table(self, title: str, results: Sequence[Result], labels: tuple[str, ...]) -> Table:
        peers = [name for name in self.peers if any(name in r.seconds or name in r.mib for r in results)]
        weighed = any(r.mib for r in results)
        columns = [*labels, *(f"{name}, {self.unit}" for name in (self.ours, *peers))]
        if weighed:
            columns += [f"{name}, MiB" for name in (self.ours, *peers)]
        table = Table(title, tuple(columns), len(labels))
        for r in results:
            show = partial(UNITS[self.unit], r.amount)
            cells = [_cell(r.seconds, self.ours, show)]
            for name in peers:
                there = name in r.ratios
                cells.append(f"{_cell(r.seconds, name, show)} ({times(r.ratios[name])})" if there else "-")
            if weighed:
                cells += [_cell(r.mib, name, lambda x: f"{x:.0f}") for name in (self.ours, *peers)]
            table.rows.append((*r.label[-len(labels) :], *cells))
        return table

    def run(self, size: str, threads: Sequence[int], only: str | None = None) -> Report:
        report = Report(self, size, machine())
        for count in threads:
            results = list(self.measure(size, count, only))
            report.results[count] = results
            report.tables += self.tables(results, count)
        return report


def _summary(ratios: dict[str, float]) -> str:
    """For those who wait."""
    return "  ".join(f"/ {name} {times(ratio)}" for name, ratio in ratios.items())


def _cell(values: dict[str, float], name: str, show: Callable[[float], str]) -> str:
    return show(values[name]) if name in values else "-"


@dataclass
class Report:
    """What a run of a program found."""

    program: Program
    size: str
    machine: list[str]
    tables: list[Table] = field(default_factory=list)
    results: dict[int, list[Result]] = field(default_factory=dict)

    def text(self) -> str:
        return "\n\n".join(table.text() for table in self.tables)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "program": self.program.name,
            "size": self.size,
            "machine": self.machine,
            "results": {
                str(count): [vars(result) for result in results] for count, results in self.results.items()
            },
        }


def add_arguments(parser: argparse.ArgumentParser, *, size: str) -> None:
    parser.add_argument("--size", choices=SIZES, default=None, help=f"how much is measured (default: {size})")
    parser.add_argument(
        "--quick", action="store_true", help="the same as --size quick: only to see that it runs"
    )
    parser.add_argument(
        "--threads", type=int, nargs="+", default=None, metavar="N", help="default: 1 and 2 for full, else 1"
    )
    parser.add_argument("--only", metavar="TEXT", help="rows whose labels contain it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")


def chosen(given: argparse.Namespace, *, size: str) -> tuple[str, list[int]]:
    size = "quick" if given.quick else given.size or size
    return size, given.threads or ([1, 2] if size == "full" else [1])


def main(program: Program, arguments: Sequence[str] | None = None) -> int:
    """The command line of one program."""
    parser = argparse.ArgumentParser(prog=f"python -m {program.module}", description=program.title)
    add_arguments(parser, size="full")
    given = parser.parse_args(arguments)
    size, threads = chosen(given, size="full")
    rows = [" ".join(case.label) for case in program.cases(size)]
    if given.only is not None and not any(given.only in row for row in rows):
        parser.error(f"--only {given.only}: no row's name contains it; rows are {'; '.join(rows)}")
    report = program.run(size, threads, given.only)
    print("\n".join(report.machine))
    print(LEGEND, end="\n\n")
    print(report.text())
    if given.json is not None:
        given.json.write_text(json.dumps([report.plain()], indent=2) + "\n")
    sys.stdout.flush()
    return 0
