"""The paper's multi-head attention, with its options, as a module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention import problem, solve
from headwise.cache import Cache, CrossCache
from headwise.kernels.arguments import arguments
from headwise.kernels.choose import choose
from headwise.kernels.measure import check_observers, solve_and_measure
from headwise.kernels.problem import Problem
from headwise.masks.base import Mask, all_of
from headwise.masks.frame import Align, Frame
from headwise.multihead.checks import check_fused, check_inputs, check_parts, check_widths, sizes
from headwise.multihead.fused import FusedLayout, FusedRows
from headwise.multihead.other_names import BY_PLACE, CALL, LAYER
from headwise.multihead.projections import project
from headwise.multihead.step import split, step
from headwise.observers.base import Observer
from headwise.observers.observations import Observations
from headwise.positions.added import AddedScores
from headwise.positions.base import Bias
from headwise.positions.rotary import Rotary


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own projection of the input.

    With h = num_heads and g = num_kv_heads (h unless grouped), head i reading key/value head
    i // (h / g):

        head_i = Attention(x W_q^i, memory W_k^i, memory W_v^i)          i = 1 .. h
        y      = Concat(head_1, ..., head_h) W_o

        W_q in R^{input_dim x h d_k}     W_k in R^{memory_dim x g d_k}
        W_o in R^{h d_v x output_dim}    W_v in R^{value_dim x g d_v}

    (Attention Is All You Need, section 3.2.2; there h = 8, d_model = 512, d_k = d_v = 64, no biases.)
    Every size is free. A query that may attend to nothing gets 0 from each head, so its output is
    out_proj's bias, or 0 without one.

    Args:
        d_model: the paper's width; the default of every other one.
        num_heads: h.
        input_dim: width of x. Default d_model.
        memory_dim: width of what keys are read from. Default input_dim.
        value_dim: width of what values are read from. Default memory_dim.
        output_dim: width of y. Default d_model.
        d_k, d_v: width of each head's queries and keys, and values. Default d_model / num_heads.
        num_kv_heads: g, fewer keys and values than queries (grouped; 1: multi-query). Divides num_heads.
        projection_bias: biases in q_proj, k_proj and v_proj. Default none, as in the paper.
        out_bias: bias in out_proj. Default: as projection_bias.
        dropout: probability that a weight is dropped while training.
        rotary: turns queries and keys by their positions.
        qk_norm: True: RMSNorm over each head's d_k, for queries and keys each their own; or a function
            of d_k that makes the module (`nn.LayerNorm`); or a module, of which each gets a copy.
            Applied before `rotary`.
        gate: each head's output times sigmoid(x W_g + b_g), one number per head and query
            (arxiv.org/abs/2505.06708, headwise).
        score_bias: a `Bias`, or a module that hands one out when called (`RelativeBias`); a learned one
            is a module, so that its parameters are the layer's.
        softcap: scores s become softcap * tanh(s / softcap).
        sinks: a learned logit per head that takes probability and gives nothing. Starts at 0.
        scale: of q . k. Default 1 / sqrt(d_k).
        kernel, strict: see `attention`.

    State dict (stable): `{q,k,v,out}_proj.weight`, `.bias` where asked for, and with the options
    `{q,k}_norm.*`, `gate_proj.{weight,bias}`, `sinks`, `score_bias.*`.

    Initialisation: each projection Xavier-uniform over its own rows, a = sqrt(6 / (in + out)), biases 0.
    It doesn't depend on how weights are stored (a fused matrix drawn as one would be narrower,
    pytorch#166378), and is repeatable from torch's seed.

    The projections are plain linears, called as modules: hooks, adapters and quantisers work. The list
    `attention_hooks` holds functions called with (problem, log-sum-exp) after each computation.

    Raises:
        ValueError, TypeError: sizes or parts that don't fit; each message names the values, the rule and
            the fix.
    """

    @arguments(LAYER)
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        input_dim: int | None = None,
        memory_dim: int | None = None,
        value_dim: int | None = None,
        output_dim: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        num_kv_heads: int | None = None,
        projection_bias: bool = False,
        out_bias: bool | None = None,
        dropout: float = 0.0,
        rotary: Rotary | None = None,
        qk_norm: bool | nn.Module | Callable[[int], nn.Module] | None = None,
        gate: bool = False,
        score_bias: Bias | nn.Module | None = None,
        softcap: float | None = None,
        sinks: bool = False,
        scale: float | None = None,
        kernel: str = "auto",
        strict: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.d_k, self.d_v = sizes(d_model, num_heads, self.num_kv_heads, d_k, d_v, dropout, rotary)
        check_parts(score_bias, softcap, scale)
        self.input_dim = d_model if input_dim is None else input_dim
        self.memory_dim = self.input_dim if memory_dim is None else memory_dim
        self.value_dim = self.memory_dim if value_dim is None else value_dim
        self.output_dim = d_model if output_dim is None else output_dim
        check_widths(self)
        out_bias = projection_bias if out_bias is None else out_bias
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        q_rows, k_rows, v_rows = self._rows.parts
        self.q_proj = nn.Linear(self.input_dim, q_rows, bias=projection_bias, **place)
        self.k_proj = nn.Linear(self.memory_dim, k_rows, bias=projection_bias, **place)
        self.v_proj = nn.Linear(self.value_dim, v_rows, bias=projection_bias, **place)
        self.out_proj = nn.Linear(num_heads * self.d_v, self.output_dim, bias=out_bias, **place)
        self.dropout = dropout
        self.rotary = rotary
        self.q_norm = _norm(qk_norm, self.d_k, place)
        self.k_norm = _norm(qk_norm, self.d_k, place)
        self.gate_proj = nn.Linear(self.input_dim, num_heads, **place) if gate else None
        self.score_bias = score_bias
        self.softcap = softcap
        self.sinks = nn.Parameter(torch.empty(num_heads, **place)) if sinks else None
        self.scale = scale
        self.kernel = kernel
        self.strict = strict
        self.attention_hooks: list[Callable[[Problem, Tensor], object]] = []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew; see Initialisation."""
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj, self.gate_proj):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)
        if self.sinks is not None:
            nn.init.zeros_(self.sinks)

    @arguments(CALL, label="a call of MultiHeadAttention", by_place=BY_PLACE)
    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        values: Tensor | None = None,
        mask: Mask | None = None,
        bias: Bias | Tensor | None = None,
        cache: Cache | CrossCache | None = None,
        lengths: Tensor | None = None,
        positions: Tensor | None = None,
        memory_positions: Tensor | None = None,
        align: Align = "end",
        observe: Sequence[Observer] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, Observations]:
        """Self-attention over x, or attention from x to memory.

        Args:
            x: [*batch, q_len, input_dim] ([q_len, input_dim] without a batch).
            memory: [*batch, k_len, memory_dim]; keys and values are read from it. Default: x.
            values: [*batch, k_len, value_dim]; values are read from it instead of memory.
            mask: who may attend to whom. Not causal unless it says so.
            bias: added to the scores of this call, besides the layer's own score_bias.
            cache: this layer's earlier keys and values, which x continues. A `CrossCache` keeps one memory's.
            lengths: with a cache, int64 [*batch]: how many steps of x are real (the rest is padding).
            positions: int64 [q_len] or [*batch, q_len], of x. Default 0, 1, ...; a cache knows its own.
            memory_positions: int64 [k_len] or [*batch, k_len], of memory.
            align: where queries stand among more (or fewer) keys, "end" or "start"; a cache knows.
            observe: what to say about each head; then the result is (y, observations).
            generator: of dropout.

        Returns: y [*batch, q_len, output_dim].

        Raises:
            ValueError: widths, batches or options that don't fit together.
        """
        alone = memory is values is bias is lengths is positions is memory_positions is None
        if cache is not None and alone and observe is None and (y := step(self, x, mask, cache)) is not None:
            return y
        check_inputs(self, x, memory, values, cache, lengths, positions, memory_positions)
        crossing = memory is not None or isinstance(cache, CrossCache)
        q = split(project(self.q_proj, x), self.num_heads)  # [*batch, heads, q_len, d_k]
        if self.q_norm is not None:
            q = self.q_norm(q).to(q.dtype)

        kept = isinstance(cache, CrossCache) and cache.filled
        if isinstance(cache, CrossCache) and kept:
            k, v = cache.view()
            memory_positions = cache.positions
        else:
            source = x if memory is None else memory
            k = split(project(self.k_proj, source), self.num_kv_heads)  # [*batch, kv_heads, k_len, d_k]
            read = source if values is None else values
            v = split(project(self.v_proj, read), self.num_kv_heads)  # [*batch, kv_heads, k_len, d_v]
            if self.k_norm is not None:
                k = self.k_norm(k).to(k.dtype)

        mark: Any = None
        q_positions, k_positions = positions, memory_positions if crossing else positions
        if self.rotary is not None:
            q_at, k_at = q_positions, k_positions
            if isinstance(cache, Cache):
                q_at = k_at = cache.next_positions(x.shape[-2], device=x.device)
            dtype = torch.promote_types(q.dtype, torch.float32)
            at = Frame.of(
                (), 1, q.shape[-2], k.shape[-2], align=align, q_pos=q_at, k_pos=k_at, device=q.device
            )
            turns = self.rotary.turns(at.q_pos, dtype=dtype)
            q = self.rotary.turn(q, turns)
            if not kept:  # keys from a cache were turned when they went in
                k = self.rotary.turn(k, self.rotary.turns(at.k_pos, dtype=dtype) if crossing else turns)
        own_mask: Mask | None = None
        if isinstance(cache, Cache):
            mark, align = cache.mark(), "end"  # a cache knows where its steps stand
            view = cache.append(k, v, lengths=lengths)
            k, v, own_mask = view.k, view.v, view.mask
            if not view.aligned:  # else the default positions are right, and kernels know them best
                q_positions, k_positions = view.q_positions, view.k_positions

        try:
            call = problem(
                q,
                k,
                v,
                mask=all_of(mask, own_mask),
                bias=self._bias(bias),
                scale=self.scale,
                softcap=self.softcap,
                sinks=self.sinks,
                dropout=self.dropout if self.training else 0.0,
                generator=generator,
                align=align,
                q_positions=q_positions,
                k_positions=k_positions,
                strict=self.strict,
            )
            if observe is not None:
                check_observers(observe, call)
            if cache is not None and (self.strict or self.kernel != "auto"):
                _check_kernel(call, self.kernel)
        except (TypeError, ValueError):
            if isinstance(cache, Cache):
                cache.rollback(mark)  # a refused call leaves no trace
            raise
        if isinstance(cache, CrossCache) and not kept:
            cache.store(k, v, memory_positions)
        if cache is not None:
            cache.claim(self)
        mark = None  # it would keep the tensors of before alive while attention is computed
        seen: Observations | None = None
        if observe is None:
            heads, lse = solve(call, kernel=self.kernel)  # [*batch, heads, q_len, d_v]
        else:
            heads, lse, seen = solve_and_measure(call, observe, self.kernel, solve)
        for hook in tuple(self.attention_hooks):  # another thread may take its own away
            hook(call, lse)
        if self.gate_proj is not None:
            heads = heads * self.gate_proj(x).sigmoid().transpose(-1, -2).unsqueeze(-1)
        y = project(self.out_proj, heads.transpose(-3, -2).flatten(-2))  # [*batch, q_len, output_dim]
        return y if seen is None else (y, seen)

    def _bias(self, bias: Bias | Tensor | None) -> Bias | None:
        own = self.score_bias() if isinstance(self.score_bias, nn.Module) else self.score_bias
        added = AddedScores(bias) if isinstance(bias, Tensor) else bias
        if own is None or not isinstance(added, Bias):
            return own if added is None else added  # where it is no bias at all, `problem` says so
        return own + added

    @torch.no_grad()
    def load_fused(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        layout: FusedLayout = "stacked",
        *,
        transposed: bool = False,
    ) -> None:
        """Copy query, key and value projections from one matrix.

        Args:
            weight: [rows, input_dim], the rows of Q, K and V in the order `layout` (see `FusedRows`).
            bias: [rows]. Without it, biases that the layer has become 0.
            layout: "stacked" for [Q | K | V], "per_head" for [q_i | k_i | v_i] head by head.
            transposed: the matrix is stored [input_dim, rows] (GPT-2's Conv1D).

        Raises:
            ValueError: another shape; a bias for a layer without; a layer whose x and memory differ in width.
        """
        linears = (self.q_proj, self.k_proj, self.v_proj)
        weight = weight.t() if transposed else weight
        check_fused(self, weight, bias)
        parts = self._rows.split(weight, layout)
        biases = self._rows.split(weight.new_zeros(weight.shape[0]) if bias is None else bias, layout)
        for linear, part, own in zip(linears, parts, biases, strict=True):
            linear.weight.copy_(part)
            if linear.bias is not None:
                linear.bias.copy_(own)

    @torch.no_grad()
    def fused_weight(
        self, layout: FusedLayout = "stacked", *, transposed: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Query, key and value projections as one matrix and its bias: the inverse of `load_fused`."""
        check_fused(self, None, None)
        weight = self._rows.join(self.q_proj.weight, self.k_proj.weight, self.v_proj.weight, layout)
        bias = None
        if self.q_proj.bias is not None:
            bias = self._rows.join(self.q_proj.bias, self.k_proj.bias, self.v_proj.bias, layout)
        return (weight.t() if transposed else weight), bias

    def extra_repr(self) -> str:
        kv = "" if self.num_kv_heads == self.num_heads else f", num_kv_heads={self.num_kv_heads}"
        options = {"dropout": self.dropout, "softcap": self.softcap, "scale": self.scale}
        shown = "".join(f", {name}={value}" for name, value in options.items() if value)
        return (
            f"d_model={self.d_model}, num_heads={self.num_heads}{kv}, d_k={self.d_k}, d_v={self.d_v}{shown}"
        )

    @property
    def _rows(self) -> FusedRows:
        return FusedRows(self.num_heads, self.num_kv_heads, self.d_k, self.d_v)


def _check_kernel(call: Problem, kernel: str) -> None:
    """Raise ValueError where the kernel that was asked for refuses (`solve` would, but later)."""
    if not torch.compiler.is_compiling():
        choose(call.flatten(), kernel)


def _norm(
    kind: bool | nn.Module | Callable[[int], nn.Module] | None, d_k: int, place: dict[str, Any]
) -> nn.Module | None:
    if kind is None or kind is False:
        return None
    if kind is True:
        return nn.RMSNorm(d_k, eps=1e-6, **place)
    return copy.deepcopy(kind) if isinstance(kind, nn.Module) else kind(d_k).to(**place)
