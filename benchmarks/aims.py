"""Rows that are held to aims: numbers beside what they should be, and whether they are.

A row reaches an aim if the number does, as it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from benchmarks import limits
from benchmarks.common import Case
from benchmarks.program import Program, Result
from benchmarks.table import Claim, Table, milliseconds


@dataclass(frozen=True)
class Aim:
    """A number of a row, and what it should be.

    Attributes:
        heading: of its column.
        value: the number; None where it can't be had (no compiled kernel, no memory measured).
        least, most: what it should be at least, at most; without either it is only shown.
        form: how it is printed.
    """

    heading: str
    value: Callable[[Result], float | None]
    least: float | None = None
    most: float | None = None
    form: str = ".2f"

    def find(self, result: Result) -> Found | None:
        value = self.value(result)
        if value is None:
            return None
        shown = format(value, self.form)
        if self.least is not None:
            return Found(value, f"{shown} (≥ {self.least:g})", float(shown) >= self.least)
        if self.most is not None:
            return Found(value, f"{shown} (≤ {self.most:g})", float(shown) <= self.most)
        return Found(value, shown, None)


class Found(NamedTuple):
    value: float
    cell: str
    reached: bool | None  # None: there is no aim


@dataclass(frozen=True)
class Row(Case):
    """A case and its aims, in the order of their columns."""

    aims: tuple[Aim, ...] = ()


@dataclass(frozen=True)
class Held(Result):
    """A row's numbers, by the headings of their aims."""

    found: dict[str, Found] = field(default_factory=dict)

    @property
    def reached(self) -> str:
        """Whether all aims are, or how many of them; "-" where none could be measured."""
        said = [one.reached for one in self.found.values() if one.reached is not None]
        if not any(said):
            return "no" if said else "-"
        return "yes" if all(said) else f"{sum(said)} of {len(said)}"


def times_as_fast(peer: str, least: float | None) -> Aim:
    """The peer's time / headwise's."""
    return Aim(f"times as fast as {peer}", lambda r: _ratio(r, peer, -1), least)


def times_the_time(other: str, most: float) -> Aim:
    """headwise's time / the other's."""
    return Aim(f"times {other}", lambda r: _ratio(r, other, 1), most=most)


def products(
    flops: float, dtype: torch.dtype, least: float | None = None, peer: str | None = None
) -> list[Aim]:
    """GFLOP/s, those of the peak in the same rounds, what share of it that is, and the peer's share.

    Args:
        flops: operations of a call that are of use.
        least: the share of the peak that is aimed at, in %.
    """

    def share(r: Result) -> float | None:
        slower = _ratio(r, limits.PEAK, 1)
        return None if slower is None else 100 * flops / limits.operations(dtype) / slower

    def peak(r: Result) -> float | None:
        return (
            None if limits.PEAK not in r.seconds else limits.operations(dtype) / r.seconds[limits.PEAK] / 1e9
        )

    def of_peer(r: Result) -> float | None:
        mine, ratio = share(r), _ratio(r, peer or "", 1)
        return None if mine is None or ratio is None else mine * ratio

    found = [
        Aim("GFLOP/s", lambda r: flops / r.seconds["headwise"] / 1e9, form=".0f"),
        Aim("peak, GFLOP/s", peak, form=".0f"),
        Aim("% of peak", share, least, form=".0f"),
    ]
    return found + ([Aim(f"{peer}, % of peak", of_peer, form=".0f")] if peer else [])


def bandwidth(size: float, least: float) -> list[Aim]:
    """GB/s, and what share that is of merely reading the same `size` bytes in the same rounds."""

    def share(r: Result) -> float | None:
        faster = _ratio(r, limits.READING, -1)
        return None if faster is None else 100 * faster

    return [
        Aim("GB/s", lambda r: size / r.seconds["headwise"] / 1e9, form=".1f"),
        Aim("% of merely reading", share, least, form=".0f"),
    ]


def _ratio(result: Result, name: str, power: int) -> float | None:
    found: float | None = result.ratios.get(name)
    return None if found is None else found**power


@dataclass(frozen=True)
class HeldProgram(Program):
    """A program whose cases are `Row`s: its tables, one for each first label, show every aim and whether it's
    reached."""

    def result(
        self, case: Case, seconds: dict[str, float], ratios: dict[str, float], mib: dict[str, float]
    ) -> Result:
        plain = super().result(case, seconds, ratios, mib)
        if not isinstance(case, Row):
            raise TypeError(f"{' '.join(case.label)} has no aims: make it a Row")
        found = {aim.heading: aim.find(plain) for aim in case.aims}
        return Held(**vars(plain), found={heading: one for heading, one in found.items() if one is not None})

    def _table(self, title: str, results: Sequence[Result], labels: tuple[str, ...]) -> Table:
        held = [r for r in results if isinstance(r, Held)]
        timed = any(r.seconds for r in held)
        names = (self.ours, *self.peers) if timed else ()
        names = tuple(name for name in names if any(name in r.seconds for r in held))
        headings = list(dict.fromkeys(heading for r in held for heading in r.found))
        columns = (*labels, *(f"{name}, {self.unit}" for name in names), *headings, "reached")
        table = Table(title, columns, len(labels))
        for r in held:
            clock = [milliseconds(r.seconds[name]) if name in r.seconds else "-" for name in names]
            cells = [r.found[heading].cell if heading in r.found else "-" for heading in headings]
            table.rows.append((*r.label[-len(labels) :], *clock, *cells, r.reached))
        return table


def claims(results: Sequence[Result]) -> list[Claim]:
    """One for each aim of each first label: that the rows reach it. (Which do, their last column tells.)"""
    held = [r for r in results if isinstance(r, Held)]
    found: dict[tuple[str, str], dict[str, bool]] = {}
    for r in held:
        for heading, one in r.found.items():
            if one.reached is not None:
                found.setdefault((r.label[0], heading), {})[" ".join(r.label[1:])] = one.reached
    return [
        Claim(f"{first}, {heading}", len(rows), tuple(row for row in rows if not rows[row]), named=False)
        for (first, heading), rows in found.items()
    ]
