"""Observations that the compiled kernel makes by itself: those of rows in the pass that gives the output,
those of keys in one more half of a pass.

Only without gradients (its numbers have none), for all rows and heads, and where positions count up: the
rest is measured block by block (measure.py). Numbers are those of the observers, to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from headwise.kernels.addresses import address
from headwise.kernels.blocks import block_scores
from headwise.kernels.choose import named, reasons_against
from headwise.kernels.native_call import forward, measure_keys, room
from headwise.kernels.problem import Problem
from headwise.observers.base import Observer
from headwise.observers.keys import KeyMass, MaxWeight, TopKeys
from headwise.observers.maps import Map
from headwise.observers.places import Offset
from headwise.observers.rows import Distance, Entropy, LogSumExp

_OF_ROWS = (Entropy, LogSumExp, Distance, MaxWeight, TopKeys, Offset)
_OF_KEYS = (KeyMass, Map)
_FAR = 32.0  # of a log-sum-exp from 0: beyond, exp(score - lse) shows its rounding by more than a few 1e-6
_MOST_TOP = 64  # keys of a row that are kept in order: for more, sorting blocks is faster


def share(problem: Problem, observers: Sequence[Observer]) -> list[Observer]:
    """Which observers of a flat problem the compiled kernel can answer; none where it isn't for the call."""
    native = named("native")
    empty = 0 in (problem.q.numel(), problem.k.numel(), problem.v.numel())
    if torch.compiler.is_compiling() or empty or _wants_gradient(problem) or reasons_against(native, problem):
        return []
    if native.passed_over(problem) is not None:
        return []
    return [one for one in observers if _answers(problem, one)]


def forward_observed(
    problem: Problem, observers: Sequence[Observer]
) -> tuple[Tensor, Tensor, dict[str, Any]] | None:
    """(out, lse, results by name) of some of `share`; None where something isn't finite. No results where
    scores are so large that weights made from the log-sum-exp would show its rounding: blocks subtract the
    largest score instead."""
    rows = _Rows(problem, observers)
    out, lse, finite = forward(problem, rows.numbers())
    if not finite:
        return None
    if lse.masked_fill(lse == float("-inf"), 0).abs().max().item() > _FAR:
        return out, lse, {}
    rows.keep("log_sum_exp", lse)
    return out, lse, rows.results() | _keys(problem, observers, lse)


@torch.no_grad()
def row_error(problem: Problem, lse: Tensor, budget: int) -> Tensor:
    """The largest |row sum of exp(s_ij - lse_i) - 1|, as `Observations` defines it, over a few rows from the
    first to the last, whose scores are made once more in at most `budget` bytes."""
    frame = problem.frame
    q_len, row = frame.q_len, frame.batch[0] * frame.heads * frame.k_len * 4
    count = min(max(2, q_len // 64), 8, max(1, budget // max(1, row)))
    places = sorted({place * (q_len - 1) // max(1, count - 1) for place in range(count)})
    rows = torch.tensor(places, device=problem.q.device)
    scores = block_scores(problem, rows, slice(0, frame.k_len), finite=True)
    right, claimed = scores.logsumexp(-1), lse[:, :, rows].to(scores.dtype)
    if problem.sinks is not None:
        right = torch.logaddexp(right, problem.sinks.to(right.dtype).view(-1, 1))
    nothing = right == float("-inf")
    error = (right - claimed).expm1().abs().masked_fill(nothing, 0.0)
    return error.masked_fill(nothing != (claimed == float("-inf")), float("inf")).amax()


def _wants_gradient(problem: Problem) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in problem.differentiable())


def _answers(problem: Problem, observer: Observer) -> bool:
    if type(observer) not in _OF_ROWS + _OF_KEYS or observer.rows is not None or observer.heads is not None:
        return False
    if isinstance(observer, Distance | Offset):
        return problem.frame.q_start is not None and problem.frame.k_start is not None
    return not isinstance(observer, TopKeys) or observer.k <= _MOST_TOP


class _Rows:
    """Room for what is observed of rows, [B, H, q_len] each."""

    def __init__(self, problem: Problem, observers: Sequence[Observer]) -> None:
        self.problem = problem
        self.observers = [one for one in observers if isinstance(one, _OF_ROWS)]
        self.shape = (problem.frame.batch[0], problem.frame.heads, problem.frame.q_len)
        self.made: dict[str, Tensor] = {}
        self.offsets = sorted({one.d for one in self.observers if isinstance(one, Offset)})
        self.top = max((one.k for one in self.observers if isinstance(one, TopKeys)), default=0)

    def numbers(self) -> tuple[int, ...]:
        """In the order in which csrc/reader.hpp reads them."""
        kinds = {type(one) for one in self.observers}
        frame, peak = self.problem.frame, MaxWeight in kinds
        offsets = torch.tensor(self.offsets, dtype=torch.int64, device="cpu")
        self.keep("offsets", offsets)
        count = len(self.offsets)
        return (
            self._float("entropy", Entropy in kinds),
            self._float("distance", Distance in kinds),
            (frame.q_start or 0) - (frame.k_start or 0),
            self._float("max_weight", peak),
            self._whole("max_key", peak),
            address(offsets) if count else 0,
            count,
            self._float("offset_mass", count > 0, (count, *self.shape)),
            self.top,
            self._whole("top_keys", self.top > 0, (*self.shape, self.top)),
            self._float("top_weights", self.top > 0, (*self.shape, self.top)),
        )

    def results(self) -> dict[str, Any]:
        return {one.name: self._result(one) for one in self.observers}

    def keep(self, name: str, x: Tensor) -> None:
        self.made[name] = x

    def _result(self, one: Observer) -> Any:
        parts: dict[type[Observer], Callable[[], tuple[Tensor, ...]]] = {
            Entropy: lambda: (self.made["entropy"].clamp_(min=0),),  # a sum whose rounding may pass 0
            LogSumExp: lambda: (self.made["log_sum_exp"].clone(),),
            Distance: lambda: (self.made["distance"],),
            MaxWeight: lambda: (self.made["max_weight"], self.made["max_key"]),
        }
        q_len = self.problem.frame.q_len
        if isinstance(one, Offset):
            return one.finish((self.made["offset_mass"][self.offsets.index(one.d)],), q_len=q_len)
        if isinstance(one, TopKeys):
            keys, weights = self.made["top_keys"], self.made["top_weights"]
            return one.finish((keys[..., : one.k], weights[..., : one.k]), q_len=q_len)
        return one.finish(parts[type(one)](), q_len=q_len)

    def _float(self, name: str, wanted: bool, shape: tuple[int, ...] | None = None) -> int:
        if not wanted:
            return 0
        self.made[name] = room(self.problem.q, *(shape or self.shape))
        return address(self.made[name])

    def _whole(self, name: str, wanted: bool, shape: tuple[int, ...] | None = None) -> int:
        if not wanted:
            return 0
        self.made[name] = self.problem.q.new_empty(shape or self.shape, dtype=torch.int64)
        return address(self.made[name])


def _keys(problem: Problem, observers: Sequence[Observer], lse: Tensor) -> dict[str, Any]:
    """Results of `KeyMass` and `Map`, which share a pass where they can."""
    frame = problem.frame
    maps = [one for one in observers if isinstance(one, Map)]
    masses = [one for one in observers if isinstance(one, KeyMass)]
    found: dict[str, Any] = {}
    for place in range(max(len(maps), 1 if masses else 0)):
        one = maps[place] if place < len(maps) else None
        cells = None
        if one is not None:
            cells = min(one.sides[0], frame.q_len), min(one.sides[1], frame.k_len)
        mass, picture = measure_keys(problem, lse, mass=place == 0 and bool(masses), cells=cells)
        if one is not None and picture is not None:
            found[one.name] = one.finish((picture,), q_len=frame.q_len)
        if mass is not None:
            found |= {wanted.name: wanted.finish((mass,), q_len=frame.q_len) for wanted in masses}
    return found
