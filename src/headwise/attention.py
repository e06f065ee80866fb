"""Scaled dot-product attention: the one function that everything else looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack, overload

import torch
from torch import Tensor

from headwise.kernels.arguments import arguments
from headwise.kernels.check import check_options, check_positions, check_tensors
from headwise.kernels.choose import Choice, choose, pick
from headwise.kernels.compiled import solve_compiled
from headwise.kernels.dropout import draw_seed
from headwise.kernels.measure import solve_and_measure
from headwise.kernels.other_names import ATTENTION
from headwise.kernels.plain import solve_plain
from headwise.kernels.problem import Problem
from headwise.masks.base import Mask
from headwise.masks.frame import ALIGNS, Align, Frame
from headwise.observers.base import Observer
from headwise.observers.observations import Observations
from headwise.positions.added import AddedScores
from headwise.positions.base import Bias


class Options(TypedDict, total=False):
    """What `attention` takes besides q, k and v; described there."""

    mask: Mask | None
    bias: Bias | Tensor | None
    scale: float | None
    softcap: float | None
    sinks: Tensor | None
    dropout: float
    generator: torch.Generator | None
    align: Align
    q_positions: Tensor | None
    k_positions: Tensor | None
    strict: bool


@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, *, observe: None = ..., kernel: str = ..., **options: Unpack[Options]
) -> Tensor: ...


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    observe: Sequence[Observer],
    kernel: str = ...,
    **options: Unpack[Options],
) -> tuple[Tensor, Observations]: ...


@arguments(ATTENTION)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | None = None,
    bias: Bias | Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    align: Align = "end",
    q_positions: Tensor | None = None,
    k_positions: Tensor | None = None,
    observe: Sequence[Observer] | None = None,
    kernel: str = "auto",
    strict: bool = False,
) -> Tensor | tuple[Tensor, Observations]:
    """Attention(Q, K, V) = softmax(scale * Q K^T) V, for every head of every batch entry.

    With every option, for query i, key j and head h:

        s_ij = scale * q_i . k_j;  softcap * tanh(s_ij / softcap);  + bias_ij;  -inf where masked
        P_ij = exp(s_ij - lse_i),  lse_i = log(sum_j exp s_ij + exp sinks_h)
        out_i = sum_j dropout(P_ij) v_j

    A query that may attend to nothing gives 0. What is masked cannot leak, even if it holds NaN.

    Args:
        q: [*batch, heads, q_len, d_k].
        k: [*batch, kv_heads, k_len, d_k]; heads is a multiple of kv_heads, and query head i reads
            key/value head i // (heads // kv_heads). Batch dimensions broadcast to those of q.
        v: [*batch, kv_heads, k_len, d_v].
        mask: who may attend to whom (`Causal`, `Window`, `KeyLengths`, `Documents`, `Prefix`, `Allow`;
            composed with `&`, `|`, `~`). True means may attend.
        bias: added to scores: a `Bias` (`ALiBi`, `RelativeBuckets`) or a float tensor broadcastable to
            [*batch, heads, q_len, k_len]. Never a mask.
        scale: default 1 / sqrt(d_k).
        softcap: keeps scores within +-softcap (before bias and mask).
        sinks: [heads], a logit per head that takes probability and gives nothing.
        dropout: share of weights set to 0 (the others grow by 1 / (1 - dropout)). It is applied
            whenever it is not 0: there is no training mode here.
        generator: where dropout's seed is drawn. The same seed drops the same weights in every kernel.
        align: "end" (the last query is the newest key) or "start" (the first query is the first key).
            Counts for every mask and bias that speaks of positions.
        q_positions, k_positions: int64 [length] or [*batch, length], instead of `align`. Keys at
            positions below 0 are cache slots that hold nothing: mask them with `ValidKeys()`.
        observe: what to say of the heads; the output is the same number with or without it.
        kernel: "auto", or the name of one (see `explain`).
        strict: refuse to run where memory would grow with q_len x k_len.

    Returns:
        out [*batch, heads, q_len, d_v], of v's dtype; with `observe`, (out, Observations).

    Raises:
        TypeError, ValueError: before anything is computed, naming values, rule and fix.

    Source: *Attention Is All You Need*, section 3.2.1.
    """
    if (
        kernel == "auto"
        and observe is None
        and bias is None
        and scale is None
        and softcap is None
        and sinks is None
        and q_positions is None
        and k_positions is None
        and type(dropout) is float
        and dropout == 0
        and align in ALIGNS
    ):
        plain = solve_plain(q, k, v, mask, at_start=align == "start")
        if plain is not None:
            return plain
    given = problem(
        q,
        k,
        v,
        mask=mask,
        bias=bias,
        scale=scale,
        softcap=softcap,
        sinks=sinks,
        dropout=dropout,
        generator=generator,
        align=align,
        q_positions=q_positions,
        k_positions=k_positions,
        strict=strict,
    )
    if observe is None:
        return solve(given, kernel=kernel)[0]
    out, _, seen = solve_and_measure(given, observe, kernel, solve)
    return out, seen


def problem(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | None = None,
    bias: Bias | Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    align: Align = "end",
    q_positions: Tensor | None = None,
    k_positions: Tensor | None = None,
    strict: bool = False,
) -> Problem:
    """The call that `attention` would compute, checked and complete. Arguments are those of `attention`."""
    batch = check_tensors(q, k, v)
    check_options(q, mask=mask, bias=bias, scale=scale, softcap=softcap, sinks=sinks, dropout=dropout)
    heads, q_len, k_len = q.shape[-3], q.shape[-2], k.shape[-2]
    check_positions("q_positions", q_positions, batch, q_len, q.device)
    check_positions("k_positions", k_positions, batch, k_len, q.device)
    if k.shape[:-3] != q.shape[:-3]:
        k = k.expand(*batch, *k.shape[-3:])
    if v.shape[:-3] != q.shape[:-3]:
        v = v.expand(*batch, *v.shape[-3:])
    frame = Frame.of(
        batch, heads, q_len, k_len, align=align, q_pos=q_positions, k_pos=k_positions, device=q.device
    )
    if isinstance(bias, Tensor):
        bias = AddedScores(bias)
    if mask is not None:
        mask.check(frame)
    if bias is not None:
        bias.check(batch=batch, heads=heads, q_len=q_len, k_len=k_len)
    return Problem(
        q,
        k,
        v,
        frame,
        scale=q.shape[-1] ** -0.5 if scale is None else float(scale),
        mask=mask,
        bias=bias,
        softcap=None if softcap is None else float(softcap),
        sinks=sinks,
        dropout=float(dropout),
        seed=draw_seed(generator, q.device) if dropout else None,
        strict=strict,
    )


def solve(problem: Problem, *, kernel: str = "auto") -> tuple[Tensor, Tensor]:
    """(out [*batch, heads, q_len, d_v], lse [*batch, heads, q_len]) of a checked call.

    lse is float32 or better, and differentiable.
    """
    flat = problem.flatten()
    device = flat.q.device.type
    if torch.compiler.is_compiling():
        out, lse = solve_compiled(flat, kernel)
    elif (device == "cpu" or torch.amp.is_autocast_available(device)) and torch.is_autocast_enabled(device):
        # Autocast would round scores to half precision; the inputs have the dtype that was asked for.
        with torch.autocast(device, enabled=False):
            out, lse = pick(flat, kernel).solve(flat)
    else:
        out, lse = pick(flat, kernel).solve(flat)
    if flat is problem:
        return out, lse
    batch = problem.frame.batch
    return out.reshape(*batch, *out.shape[1:]), lse.reshape(*batch, *lse.shape[1:])


@arguments(ATTENTION, options=Options.__annotations__)
def explain(q: Tensor, k: Tensor, v: Tensor, *, kernel: str = "auto", **options: Unpack[Options]) -> Choice:
    """Which kernel would run, and why each other one would not. Print it. Nothing is computed.

    Arguments are those of `attention`.
    """
    options["generator"] = torch.Generator()  # a seed of its own: the caller's generators stay where they are
    return choose(problem(q, k, v, **options).flatten(), kernel)
