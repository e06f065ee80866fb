"""Observations: what observers say of a problem, in one pass over its rows.

Strips of query rows are taken against all the keys that they may attend to, so that every block
holds whole rows: softmax, entropy and the heaviest keys are exact without an online form. No block
is larger than a fixed budget, and with gradients each block is computed again in the backward pass,
so that memory grows with the lengths and not with their product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from headwise.kernels.blocks import block_scores, fold, strips
from headwise.kernels.joins import Join, over_heads
from headwise.kernels.live import all_finite
from headwise.kernels.native_observe import Found, forward_observed, share
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
    flat, batch = problem.flatten(), problem.frame.batch
    found = _own(flat, observers, kernel, batch)
    if found is None:
        out, lse = solve(problem, kernel=kernel)
        return out, lse, _measured(flat, observers, lse, None, batch)
    out, lse = _unfolded(found.out, batch), _unfolded(found.lse, batch)
    return out, lse, _measured(flat, observers, lse, found, batch)


def measure(
    problem: Problem,
    observers: Sequence[Observer],
    *,
    lse: Tensor | None = None,
    kernel: str = "auto",
) -> Observations:
    """What `observers` say of `problem`; dropout has no part in it.

    Every statistic uses the log-sum-exp of the scores, computed here in float32 or better. Observers
    that ask for the same rows and heads share one pass; those that ask for some cost only these.
    Differentiable in q, k, sinks and the bias.

    Args:
        lse: [*batch, heads, q_len], what a kernel returned for this problem. Only checked:
            `Observations.row_sum_error` says by how much rows of exp(s_ij - lse_i) miss 1.
        kernel: the one that was asked for. The compiled kernel says nothing of another's calls.

    Raises:
        TypeError: something that is not an `Observer`.
        ValueError: two observers of one name, or one that doesn't fit the problem.
    """
    check_observers(observers, problem)
    flat, batch = problem.flatten(), problem.frame.batch
    return _measured(flat, observers, lse, _own(flat, observers, kernel, batch), batch)


def _own(flat: Problem, observers: Sequence[Observer], kernel: str, batch: tuple[int, ...]) -> Found | None:
    """What the compiled kernel says by itself, where it may."""
    mine = share(flat, observers, asked=kernel == "native") if kernel in _OWN else []
    return forward_observed(flat, mine, batch) if mine else None


def _measured(
    flat: Problem,
    observers: Sequence[Observer],
    lse: Tensor | None,
    found: Found | None,
    batch: tuple[int, ...],
) -> Observations:
    """What a kernel has said, and all else that `observers` say.

    Args:
        lse: as in `measure`.
    """
    if lse is not None:
        lse = lse.detach().reshape(flat.frame.batch[0], flat.frame.heads, flat.frame.q_len)
    results: dict[str, Any] = {}
    errors: list[Tensor] = []
    if found is not None:
        results = {
            name: map_tensors(result, lambda t: _unfolded(t, batch)) for name, result in found.results.items()
        }
        errors = [found.row_error(found.lse if lse is None else lse)]
    rest = tuple(observer for observer in observers if observer.name not in results)
    if rest:
        with _exact(flat.q.device.type):
            for (rows, heads), group in _groups(flat, rest).items():
                more, error = _run(_Pass(flat, batch, group, rows, heads, lse))
                results |= more
                errors.append(error)
    error_of_all = errors[0] if len(errors) == 1 else torch.stack(errors).amax() if errors else None
    return Observations(
        {observer.name: results[observer.name] for observer in observers},
        row_sum_error=error_of_all,
        row_sum_of="scores" if lse is None else "kernel",
    )


def _unfolded(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    return x if len(batch) == 1 else x.reshape(*batch, *x.shape[1:])


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
        joins = [Join(observer.joins, count, graph) for observer in job.observers]
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
        whole = over_heads([joined[place] for joined in by_part], order)
        result = observer.finish(whole, q_len=problem.frame.q_len)
        results[observer.name] = map_tensors(result, lambda t: _unfolded(t, job.batch))
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
