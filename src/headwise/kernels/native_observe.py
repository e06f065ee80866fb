"""Observations that the compiled kernel makes by itself: those of rows in the pass that gives the output,
those of keys in one more half of a pass.

Only without gradients (its numbers have none), for all rows and heads, and where positions count up: the
rest is measured block by block (measure.py). Numbers are those of the observers, to float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.kernels.addresses import address, readable
from headwise.kernels.choose import named, reasons_against
from headwise.kernels.native_call import Told, check_rows, forward, measure_keys, room
from headwise.kernels.problem import Problem
from headwise.observers.base import Observer
from headwise.observers.keys import KeyMass, MaxWeight, TopKeys
from headwise.observers.maps import Map
from headwise.observers.places import Mass, Offset
from headwise.observers.rows import Distance, Entropy, LogSumExp, Spread

_OF_ROWS = (Entropy, LogSumExp, Distance, Spread, MaxWeight, TopKeys, Offset, Mass)
_OF_KEYS = (KeyMass, Map)
_MADE_BY: dict[type[Observer], tuple[str, ...]] = {  # of those that are made as they are asked for
    Entropy: ("entropy",),
    Distance: ("distance",),
    Spread: ("spread",),
    MaxWeight: ("max_weight", "max_key"),
}
_MOST_TOP = 64  # keys of a row that are kept in order: for more, sorting blocks is faster
_MOST_CLASSES = 256  # of one `Mass`: each is a row of sums in every thread
_ROWS_PER_CHECKED, _MOST_CHECKED = 2048, 64  # of the rows of all heads, so that checking takes a hundredth


def share(problem: Problem, observers: Sequence[Observer], *, asked: bool = False) -> list[Observer]:
    """Which observers of a flat problem the compiled kernel can answer; none where it isn't for the call.

    Args:
        asked: whether it was asked for by its name, so that it doesn't matter what would be faster.
    """
    native = named("native")
    empty = 0 in (problem.q.numel(), problem.k.numel(), problem.v.numel())
    if torch.compiler.is_compiling() or empty or _wants_gradient(problem) or reasons_against(native, problem):
        return []
    if not asked and native.passed_over(problem) is not None:
        return []
    return [one for one in observers if _answers(problem, one)]


@dataclass(frozen=True)
class Found:
    """What one call of the kernel gave of a flat problem, and how it can be checked."""

    out: Tensor
    lse: Tensor
    results: dict[str, Any]  # by the observers' names
    told: Told

    def row_error(self, lse: Tensor) -> Tensor:
        """The largest |row sum of exp(s_ij - lse_i) - 1|, as `Observations` defines it, over a few of the
        rows of all heads, from the first to the last."""
        count = lse.numel()
        rows = min(count, max(4, min(count // _ROWS_PER_CHECKED, _MOST_CHECKED)))
        return torch.tensor(check_rows(self.told, lse, rows), dtype=torch.float32, device="cpu")


def forward_observed(problem: Problem, observers: Sequence[Observer], batch: tuple[int, ...]) -> Found | None:
    """Outputs, and the results of some of `share`; None where something isn't finite.

    Args:
        batch: the call's batch dimensions, which the flat problem has as one.
    """
    rows, told = _Rows(problem, observers, batch), Told(problem)
    out, lse, finite = forward(problem, rows.numbers(), told)
    if not finite:
        return None
    rows.made["log_sum_exp"] = lse
    return Found(out, lse, rows.results() | _keys(problem, told, observers, rows), told)


def _wants_gradient(problem: Problem) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in problem.differentiable())


def _answers(problem: Problem, observer: Observer) -> bool:
    if type(observer) not in _OF_ROWS + _OF_KEYS or observer.rows is not None or observer.heads is not None:
        return False
    if isinstance(observer, Distance | Offset):
        return problem.frame.q_start is not None and problem.frame.k_start is not None
    if isinstance(observer, Spread):
        return problem.frame.k_start is not None
    if isinstance(observer, Mass):
        return observer.count <= _MOST_CLASSES and (
            not isinstance(observer.keys, Tensor) or readable(observer.keys)
        )
    return not isinstance(observer, TopKeys) or observer.k <= _MOST_TOP


class _Rows:
    """Room for what is observed of rows, [B, H, q_len] each."""

    def __init__(self, problem: Problem, observers: Sequence[Observer], batch: tuple[int, ...]) -> None:
        self.problem = problem
        self.observers = [one for one in observers if isinstance(one, _OF_ROWS)]
        self.again = any(isinstance(one, _OF_KEYS) for one in observers)  # whether weights are made once more
        self.batch = batch
        self.shape = (problem.frame.batch[0], problem.frame.heads, problem.frame.q_len)
        self.made: dict[str, Tensor] = {}
        self.offsets = sorted({one.d for one in self.observers if isinstance(one, Offset)})
        self.top = max((one.k for one in self.observers if isinstance(one, TopKeys)), default=0)
        self.marked = [one for one in self.observers if isinstance(one, Mass)]

    def numbers(self) -> tuple[int, ...]:
        """In the order in which csrc/reader.hpp reads them."""
        kinds = {type(one) for one in self.observers}
        frame, peak = self.problem.frame, MaxWeight in kinds
        count, columns = len(self.offsets), sum(one.count for one in self.marked)
        return (
            self._float("entropy", Entropy in kinds),
            self._float("distance", Distance in kinds),
            (frame.q_start or 0) - (frame.k_start or 0),
            self._float("spread", Spread in kinds),
            self._float("max_weight", peak),
            self._whole("max_key", peak),
            self._offsets(),
            count,
            self._float("offset_mass", count > 0, (count, *self.shape)),
            self.top,
            self._whole("top_keys", self.top > 0, (*self.shape, self.top)),
            self._float("top_weights", self.top > 0, (*self.shape, self.top)),
            len(self.marked),
            columns,
            *self._marks(),
            self._float("marked", columns > 0, (*self.shape, columns)),
            self._float("reference", self.again),
            self._float("share", self.again),
        )

    def results(self) -> dict[str, Any]:
        return {one.name: self._result(one) for one in self.observers}

    def _result(self, one: Observer) -> Any:
        parts: tuple[Tensor, ...]
        if isinstance(one, Offset):
            parts = (self.made["offset_mass"][self.offsets.index(one.d)],)
        elif isinstance(one, TopKeys):
            keys, weights = self.made["top_keys"], self.made["top_weights"]
            parts = (keys[..., : one.k], weights[..., : one.k])
        elif isinstance(one, Mass):
            parts = (self._marked(one),)
        elif isinstance(one, LogSumExp):
            parts = (self.made["log_sum_exp"].clone(),)
        else:
            parts = tuple(self.made[part] for part in _MADE_BY[type(one)])
        return one.finish(parts, q_len=self.problem.frame.q_len)

    def _offsets(self) -> int:
        if not self.offsets:
            return 0
        return self._kept("offsets", torch.tensor(self.offsets, dtype=torch.int64, device="cpu"))

    def _marked(self, one: Mass) -> Tensor:
        start = sum(other.count for other in self.marked[: self.marked.index(one)])
        columns = start if one.classes is None else slice(start, start + one.count)
        return self.made["marked"][..., columns].contiguous()

    def _marks(self) -> tuple[int, int]:
        """Of each key the column of `marked` that its weight is added to, [observers, B or 1, k_len]; -1 for
        none. As an address and the step from entry to entry."""
        if not self.marked:
            return 0, 0
        k_len, start = self.problem.frame.k_len, 0
        marks: list[Tensor] = []
        for one in self.marked:
            classes = one.classes_of(self.batch, k_len).to(torch.int32)  # [B or 1, k_len]
            marks.append(classes if start == 0 else torch.where(classes < 0, classes, classes + start))
            start += one.count
        each = max(len(rows) for rows in marks)
        joined = marks[0].contiguous()
        if len(marks) > 1:
            joined = torch.stack([rows.expand(each, k_len) for rows in marks])
        return self._kept("marks", joined), k_len if each > 1 else 0

    def _float(self, name: str, wanted: bool, shape: tuple[int, ...] | None = None) -> int:
        return self._kept(name, room(self.problem.q, *(shape or self.shape))) if wanted else 0

    def _whole(self, name: str, wanted: bool, shape: tuple[int, ...] | None = None) -> int:
        if not wanted:
            return 0
        return self._kept(name, self.problem.q.new_empty(shape or self.shape, dtype=torch.int64))

    def _kept(self, name: str, x: Tensor) -> int:
        self.made[name] = x
        return address(x)


def _keys(problem: Problem, told: Told, observers: Sequence[Observer], rows: _Rows) -> dict[str, Any]:
    """Results of `KeyMass` and `Map`, which share a pass where they can. Nothing where scores are so large
    (1e30) that weights can't be made from float32 products once more."""
    frame = problem.frame
    maps = [one for one in observers if isinstance(one, Map)]
    masses = [one for one in observers if isinstance(one, KeyMass)]
    found: dict[str, Any] = {}
    for place in range(max(len(maps), 1 if masses else 0)):
        one = maps[place] if place < len(maps) else None
        cells = None
        if one is not None:
            cells = min(one.sides[0], frame.q_len), min(one.sides[1], frame.k_len)
        reference, share = rows.made["reference"], rows.made["share"]
        wanted = place == 0 and bool(masses)
        mass, picture = measure_keys(problem, told, reference, share, mass=wanted, cells=cells)
        checked = picture if mass is None else mass  # a row that has no share spoils both
        if checked is None or not math.isfinite(checked.sum().item()):  # of numbers that are 0 or more
            return {}
        if one is not None and picture is not None:
            found[one.name] = one.finish((picture,), q_len=frame.q_len)
        if mass is not None:
            found |= {one.name: one.finish((mass,), q_len=frame.q_len) for one in masses}
    return found
