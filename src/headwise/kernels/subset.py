"""The same problem for some of its heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from headwise.kernels.problem import Problem
from headwise.masks.base import Mask
from headwise.masks.frame import Frame, Index
from headwise.positions.base import Bias


@dataclass(frozen=True)
class Part:
    """Some heads of a flat problem. `places` are their places among the heads that were asked for."""

    problem: Problem
    heads: tuple[int, ...]
    places: tuple[int, ...]


def parts(problem: Problem, heads: Sequence[int] | None, at_once: int) -> Iterator[Part]:
    """Cut a flat problem by heads, `at_once` query heads or a few more in a part.

    Keys are never copied: a part is either a run of key/value heads with all of their query heads, or
    query heads that share one key/value head.
    """
    count, groups = problem.frame.heads, problem.groups
    wanted = range(count) if heads is None else heads
    if list(wanted) == list(range(count)):
        kv_at_once = max(1, at_once // groups)
        if kv_at_once >= problem.kv_heads:
            yield Part(problem, tuple(wanted), tuple(wanted))
            return
        if at_once >= groups:
            for first in range(0, problem.kv_heads, kv_at_once):
                last = min(first + kv_at_once, problem.kv_heads)
                run = tuple(range(first * groups, last * groups))
                yield Part(_of(problem, run, slice(first, last)), run, run)
            return
    if not wanted:  # one part without heads, for the shapes
        yield Part(_of(problem, (), slice(0, 0)), (), ())
        return
    by_kv: dict[int, list[int]] = {}
    for place, head in enumerate(wanted):
        by_kv.setdefault(head // groups, []).append(place)
    for kv, places in by_kv.items():
        for start in range(0, len(places), max(1, at_once)):
            some = tuple(places[start : start + max(1, at_once)])
            chosen = tuple(wanted[place] for place in some)
            yield Part(_of(problem, chosen, slice(kv, kv + 1)), chosen, some)


def _of(problem: Problem, heads: tuple[int, ...], kv: slice) -> Problem:
    frame, index = problem.frame, list(heads)
    return replace(
        problem,
        q=problem.q[:, heads[0] : heads[-1] + 1] if _is_run(heads) else problem.q[:, index],
        k=problem.k[:, kv],
        v=problem.v[:, kv],
        frame=frame.sized(frame.batch, len(heads)),
        mask=None if problem.mask is None else _HeadsOfMask(problem.mask, frame, heads),
        bias=None if problem.bias is None else _HeadsOfBias(problem.bias, frame, heads),
        sinks=None if problem.sinks is None else problem.sinks[index],
    )


def _is_run(heads: tuple[int, ...]) -> bool:
    return bool(heads) and heads == tuple(range(heads[0], heads[0] + len(heads)))


def _select(block: Tensor, heads: tuple[int, ...]) -> Tensor:
    """The heads of a block broadcastable to [B, H, rows, cols]."""
    return block if block.ndim < 3 or block.shape[-3] == 1 else block[..., list(heads), :, :]


@dataclass(frozen=True, eq=False)
class _HeadsOfMask(Mask):
    """Some heads of a mask, which is asked as if for all of them."""

    mask: Mask
    whole: Frame
    heads: tuple[int, ...]

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return _select(self.mask.allow(q_pos, k_pos), self.heads)

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return _select(self.mask.block(self.whole, rows, cols), self.heads)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        return _select(self.mask.tiles(self.whole, q_block, k_block), self.heads)


@dataclass(frozen=True, eq=False)
class _HeadsOfBias(Bias):
    """Some heads of a bias, which is asked as if for all of them."""

    bias: Bias
    whole: Frame
    heads: tuple[int, ...]

    def tensors(self) -> tuple[Tensor, ...]:
        return self.bias.tensors()

    def with_tensors(self, *tensors: Tensor) -> Bias:
        return _HeadsOfBias(self.bias.with_tensors(*tensors), self.whole, self.heads)

    def scores(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return _select(self.bias.scores(q_pos, k_pos), self.heads)

    def block(self, places: Any, rows: Any, cols: Any) -> Tensor:
        return _select(self.bias.block(self.whole, rows, cols), self.heads)
