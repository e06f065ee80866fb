"""Observations: what observers say of a problem, in one pass over its rows.

Strips of query rows are taken against all the keys that they may attend to, so that every block
holds whole rows: softmax, entropy and the heaviest keys are exact without an online form. No block
is larger than a fixed budget, and with gradients each block is computed again in the backward pass,
so that memory grows with the lengths and not with their product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from headwise.kernels.blocks import block_scores, fold, strips
from headwise.kernels.live import all_finite
from headwise.kernels.native_observe import forward_observed, row_error, share
from headwise.kernels.problem import Problem
from headwise.kernels.subset import Part, parts
from headwise.masks.frame import Index
from headwise.observers.base import Block, Observer, chosen, require_observers
from headwise.observers.observations import Observations, map_tensors

CPU_BLOCK = 4 * 2**20  # bytes of one block's scores, all heads together: a few such are alive at once
DEVICE_BLOCK = 64 * 2**20  # larger where each operation has a launch to pay for
Solve = Callable[..., tuple[Tensor, Tensor]]  # `headwise.attention.solve`, of a floor above
_OWN = ("auto", "native")  # names under which the compiled kernel may observe
STRIPS = 512  # at most about so many strips are looked at for empty columns: linear at any length


def solve_and_measure(
    problem: Problem, observers: Sequence[Observer], kernel: str, solve: Solve
) -> tuple[Tensor, Tensor, Observations]:
    """(out, lse, what `observers` say): `solve`, then `measure`, and in one pass where a kernel can."""
    check_observers(observers, problem)
    flat = problem.flatten()
    mine = share(flat, observers) if kernel in _OWN else []
    found = forward_observed(flat, mine) if mine else None
    if found is None:
        out, lse = solve(problem, kernel=kernel)
        return out, lse, measure(problem, observers, lse=lse, known={})
    batch = problem.frame.batch
    out, lse, results = found
    out, lse = out.reshape(*batch, *out.shape[1:]), lse.reshape(*batch, *lse.shape[1:])
    return out, lse, measure(problem, observers, lse=lse, known=results)


def measure(
    problem: Problem,
    observers: Sequence[Observer],
    *,
    lse: Tensor | None = None,
    known: Mapping[str, Any] | None = None,
    kernel: str = "auto",
) -> Observations:
    """What `observers` say of `problem`; dropout has no part in it.

    Every statistic uses the log-sum-exp of the scores, computed here in float32 or better. Observers
    that ask for the same rows and heads share one pass; those that ask for some cost only these.
    Differentiable in q, k, sinks and the bias.

    Args:
        lse: [*batch, heads, q_len], what a kernel returned for this problem. Only checked:
            `Observations.row_sum_error` says by how much rows of exp(s_ij - lse_i) miss 1.
        known: results by name that the kernel itself gave, of the flat problem. None: not asked yet.
        kernel: the one that was asked for. The compiled kernel says nothing of another's calls.

    Raises:
        TypeError: something that is not an `Observer`.
        ValueError: two observers of one name, or one that doesn't fit the problem.
    """
    observers = tuple(observers)
    check_observers(observers, problem)
    frame, flat = problem.frame, problem.flatten()
    if lse is not None:
        lse = lse.detach().reshape(flat.frame.batch[0], flat.frame.heads, flat.frame.q_len)
    results: dict[str, Any] = {}
    errors: list[Tensor] = []
    made = lse
    if known is None:
        mine = share(flat, observers) if kernel in _OWN else []
        own = forward_observed(flat, mine) if mine else None
        known = {} if own is None else own[2]
        made = None if own is None else own[1]
    for name, result in known.items():
        results[name] = map_tensors(result, lambda t: t.reshape(*frame.batch, *t.shape[1:]))
    rest = tuple(observer for observer in observers if observer.name not in results)
    with _exact(flat.q.device.type):
        if results and made is not None:  # the kernel's own: some rows are looked at again, to check it
            errors.append(row_error(flat, made if lse is None else lse, CPU_BLOCK))
        for (rows, heads), group in _groups(flat, rest).items():
            found, error = _run(_Pass(flat, frame.batch, group, rows, heads, lse))
            results |= found
            errors.append(error)
    return Observations(
        {observer.name: results[observer.name] for observer in observers},
        row_sum_error=torch.stack(errors).amax() if errors else None,
        row_sum_of="scores" if lse is None else "kernel",
    )


def check_observers(observers: Sequence[Observer], problem: Problem) -> None:
    """Raise where an observer doesn't fit the call, before anything is computed."""
    frame = problem.frame
    require_observers(observers)
    for observer in observers:
        observer.check(batch=frame.batch, heads=frame.heads, q_len=frame.q_len, k_len=frame.k_len)


def _exact(device: str) -> AbstractContextManager[Any]:
    """Autocast would run the products of a block in 16 bits."""
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


_Choice = tuple[tuple[int, ...] | None, tuple[int, ...] | None]


def _groups(flat: Problem, observers: tuple[Observer, ...]) -> dict[_Choice, list[Observer]]:
    groups: dict[_Choice, list[Observer]] = {}
    for observer in observers:
        rows = chosen(observer.rows, flat.frame.q_len, what="rows", owner=observer.name)
        heads = chosen(observer.heads, flat.frame.heads, what="heads", owner=observer.name)
        groups.setdefault((rows, heads), []).append(observer)
    return groups


@dataclass(frozen=True)
class _Pass:
    """Some observers of a flat problem that look at the same rows and heads."""

    problem: Problem
    batch: tuple[int, ...]
    observers: list[Observer]
    rows: tuple[int, ...] | None
    heads: tuple[int, ...] | None
    lse: Tensor | None


def _run(job: _Pass) -> tuple[dict[str, Any], Tensor]:
    """Results by name, and the largest row sum error."""
    problem = job.problem
    problem = replace(problem, k=problem.k.to(problem.score_dtype))  # once, and not for every block
    sources = (problem.q, problem.k, problem.sinks, *(problem.bias.tensors() if problem.bias else ()))
    graph = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in sources)
    error = torch.zeros((), dtype=problem.score_dtype, device=problem.q.device)
    count = problem.frame.q_len if job.rows is None else len(job.rows)
    by_part: list[list[tuple[Tensor, ...]]] = []
    order: list[int] = []
    for part in parts(problem, job.heads, at_once=_fitting(problem, problem.frame.k_len)):
        joins = [_Join(observer.joins, count, graph) for observer in job.observers]
        cuts = list(_cuts(part.problem, job.rows))
        # Without gradients nothing has to be kept from them; and with them, one look spares many.
        finite = not graph or (len(cuts) > 1 and all_finite(problem.q, problem.k))
        for start, rows, cols in cuts:
            if graph and len(cuts) > 1:
                pieces, missed = checkpoint(
                    _look, job, part, rows, cols, finite, use_reentrant=False, preserve_rng_state=False
                )
            else:
                pieces, missed = _look(job, part, rows, cols, finite)
            for join, piece in zip(joins, pieces, strict=True):
                join.add(piece, start)
            error = torch.maximum(error, missed)
        by_part.append([join.joined() for join in joins])
        order.extend(part.places)
    results: dict[str, Any] = {}
    for place, observer in enumerate(job.observers):
        whole = _over_heads([joined[place] for joined in by_part], order)
        result = observer.finish(whole, q_len=problem.frame.q_len)
        results[observer.name] = map_tensors(result, lambda t: t.reshape(*job.batch, *t.shape[1:]))
    return results, error


def _free(problem: Problem) -> bool:
    """Is a size left free (`torch.export`)? A budget of bytes would make a constant of it."""
    frame = problem.frame
    return any(isinstance(size, torch.SymInt) for size in (frame.batch[0], frame.q_len, frame.k_len))


def _fitting(problem: Problem, width: int, heads: int = 1) -> int:
    """How many rows of `width` scores, each for all batch entries and so many heads, fit into a block."""
    if _free(problem):
        return sys.maxsize
    budget = CPU_BLOCK if problem.q.device.type == "cpu" else DEVICE_BLOCK
    row = width * problem.frame.batch[0] * heads * problem.score_dtype.itemsize
    return max(1, budget // max(1, row))


def _cuts(problem: Problem, rows: tuple[int, ...] | None) -> Iterator[tuple[int, Index, Index]]:
    """Blocks: where it starts among the rows that are looked at, the rows, and the columns."""
    frame = problem.frame
    if rows is None and _free(problem):  # one block: how many there are would be a constant
        yield 0, slice(0, frame.q_len), slice(0, frame.k_len)
        return
    if rows is not None:
        height = _fitting(problem, frame.k_len, frame.heads)
        for start in range(0, max(1, len(rows)), height):  # at least one block, for the shapes
            index = torch.tensor(rows[start : start + height], dtype=torch.int64, device=frame.device)
            yield start, index, slice(0, frame.k_len)
        return
    if frame.q_len == 0 or frame.batch[0] == 0:
        yield 0, slice(0, frame.q_len), slice(0, frame.k_len)
        return
    tall = frame.q_len if problem.mask is None else max(64, -(-frame.q_len // STRIPS))
    for strip in strips(problem, tall):
        height = _fitting(problem, strip.width, frame.heads)
        for start in range(strip.rows.start, strip.rows.stop, height):
            yield start, slice(start, min(start + height, strip.rows.stop)), strip.cols


def _look(
    job: _Pass, part: Part, rows: Index, cols: Index, finite: bool
) -> tuple[list[tuple[Tensor, ...]], Tensor]:
    """What each observer says of one block, and the block's row sum error."""
    problem, frame = part.problem, part.problem.frame
    scores = block_scores(problem, rows, cols, finite=finite)
    weights, lse = _softmax(scores, problem.sinks)
    block = Block(
        scores=scores,
        weights=weights,
        lse=lse,
        q_pos=fold(frame.q(rows)),
        k_pos=fold(frame.k(cols)),
        rows=_numbers(rows, frame.device),
        cols=_numbers(cols, frame.device),
        heads=torch.tensor(part.heads, dtype=torch.int64, device=frame.device),
        batch=job.batch,
        q_len=frame.q_len,
        k_len=frame.k_len,
    )
    return [observer.measure(block) for observer in job.observers], _missed(job, problem, block)


def _softmax(scores: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights and log-sum-exp over all columns, with one `exp`. Rows without a finite score: 0, -inf (or
    the sink), and a gradient of 0. What is masked has weight 0, also in a row that attends to NaN."""
    if scores.shape[-1] == 0:
        top = scores.new_full((*scores.shape[:-1], 1), float("-inf"))
    else:
        top = scores.detach().amax(-1, keepdim=True)
    sink = None if sinks is None else sinks.to(scores.dtype).view(1, -1, 1, 1)
    if sink is not None:
        top = torch.maximum(top, sink.detach())
    top = top.masked_fill(top == float("-inf"), 0.0)
    weights = torch.where(scores == float("-inf"), 0, (scores - top).exp())
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + (sink - top).exp()
    dead = total == 0
    total = total.masked_fill(dead, 1.0)
    lse = (top + total.log()).masked_fill(dead, float("-inf"))
    # Divided where it may be NaN, so that NaN stays with the keys that the row attends to.
    return torch.where(weights == 0, weights, weights / total), lse.squeeze(-1)


@torch.no_grad()
def _missed(job: _Pass, problem: Problem, block: Block) -> Tensor:
    """The largest |row sum - 1| of the block's rows that may attend to something."""
    nothing = block.lse == float("-inf")
    if job.lse is None:
        total = block.weights.sum(-1)
        if problem.sinks is not None:
            total = total + (problem.sinks.to(total.dtype).view(1, -1, 1) - block.lse).exp()
        error = (total - 1).abs().masked_fill(nothing, 0.0)
    else:
        claimed = job.lse[:, block.heads][:, :, block.rows].to(block.lse.dtype)
        # sum_j exp(s_ij - claimed) = exp(lse - claimed)
        error = (block.lse - claimed).expm1().abs().masked_fill(nothing, 0.0)
        error = error.masked_fill(nothing != (claimed == float("-inf")), float("inf"))
    return error.amax() if error.numel() else error.new_zeros(())


def _numbers(index: Index, device: torch.device) -> Tensor:
    return torch.arange(index.start, index.stop, device=device) if isinstance(index, slice) else index


class _Join:
    """Puts together what an observer says of block after block."""

    def __init__(self, how: str, count: int, graph: bool) -> None:
        self.how = how
        self.count = count  # rows in all
        self.graph = graph
        self.whole: tuple[Tensor, ...] = ()
        self.pieces: list[tuple[Tensor, ...]] = []

    def add(self, piece: tuple[Tensor, ...], start: int) -> None:
        if self.how == "sum":
            pairs = zip(self.whole, piece, strict=True)
            self.whole = tuple(a + b for a, b in pairs) if self.whole else piece
        elif self.graph or all(part.shape[2] == self.count for part in piece):
            self.pieces.append(piece)
        else:  # written in place, so that the largest result, the weights, is held once
            if not self.whole:
                self.whole = tuple(p.new_empty((*p.shape[:2], self.count, *p.shape[3:])) for p in piece)
            for whole, part in zip(self.whole, piece, strict=True):
                whole[:, :, start : start + part.shape[2]] = part

    def joined(self) -> tuple[Tensor, ...]:
        if self.pieces:
            return tuple(
                torch.cat(same, dim=2) if len(same) > 1 else same[0]
                for same in zip(*self.pieces, strict=True)
            )
        return self.whole


def _over_heads(by_part: list[tuple[Tensor, ...]], order: list[int]) -> tuple[Tensor, ...]:
    """The parts side by side along the heads, in the order in which the heads were asked for."""
    same_heads = zip(*by_part, strict=True)
    joined = by_part[0] if len(by_part) == 1 else tuple(torch.cat(same, dim=1) for same in same_heads)
    if order == sorted(order):
        return joined
    inverse = torch.tensor(order, device=joined[0].device).argsort()
    return tuple(whole.index_select(1, inverse) for whole in joined)
