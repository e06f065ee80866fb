"""Exact attention in strips of query rows: any option, memory linear in length, pure PyTorch.

A strip holds some query rows against every key that they may attend to, so softmax needs no running
maximum. Only one slab of a strip (some batch entries and heads) exists at a time; the backward pass
computes it again from the log-sum-exp.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.kernels.live import all_finite, finite_rows
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem
from headwise.kernels.slabs import Slab, slabs


class Tiled(PairKernel):
    name = "tiled"
    linear_memory = True

    def supports(self, problem: Problem) -> tuple[str, ...]:
        if not problem.holds_values:
            return ("the tensors hold no values, and this kernel looks at some to skip what is masked",)
        mixed = problem.mixed()
        if mixed is not None:
            return (f"{mixed}: it writes results into tensors, which are of one class",)
        return ()

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        frame = problem.frame
        out = problem.v.new_zeros(*frame.batch, frame.heads, frame.q_len, problem.d_v)
        lse = problem.q.new_full(out.shape[:-1], float("-inf"), dtype=problem.score_dtype)
        if problem.sinks is not None:  # a row without keys attends to its sink alone
            lse.copy_(problem.sinks.to(lse.dtype).view(-1, 1).expand_as(lse))
        if lse.numel() == 0:  # nothing to say (not so where d_v is 0)
            return out, lse
        finite = all_finite(problem.v) and (problem.bias is None or all_finite(problem.q, problem.k))
        for slab in slabs(problem, finite):
            place = (slab.entries, slab.heads, slab.strip.rows)
            part, part_lse = _forward(problem, slab)
            out[place], lse[place] = part, part_lse
        if problem.sinks is not None:  # +inf and NaN leave no numbers, as in any softmax
            broken = ~(problem.sinks < float("inf")).view(-1, 1)
            if bool(broken.any()):
                out.masked_fill_(broken.unsqueeze(-1), float("nan"))
                lse.masked_fill_(broken, float("nan"))
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
    ) -> Grads:
        dtype = problem.score_dtype
        d_q = torch.zeros_like(problem.q, dtype=dtype)
        d_k = torch.zeros_like(problem.k, dtype=dtype)
        d_v = torch.zeros_like(problem.v, dtype=dtype)
        d_bias: tuple[Tensor, ...] = ()
        if problem.bias is not None and not problem.bias_fixed:
            d_bias = tuple(_zeros(t) for t in problem.bias.tensors())
        grads = Grads(d_q, d_k, d_v, None, d_bias)
        delta = (d_out.to(dtype) * out.to(dtype)).sum(-1)  # [B, H, q_len]
        if d_lse is not None:
            delta -= d_lse
        finite = all_finite(problem.q, problem.k, problem.v, d_out, delta)
        if not finite:  # then out doesn't say it, and each slab adds its own
            delta = torch.zeros_like(delta) if d_lse is None else -d_lse.to(dtype)
        if lse.numel():
            coarse = rounded_off(lse)
            for slab in slabs(problem, finite):
                _backward(problem, slab, lse, delta, d_out, grads, coarse)
        if problem.sinks is None:
            return grads
        # d lse / d sink = exp(sink - lse), and so for the weights: the sink is a key whose value is 0.
        share = (problem.sinks.to(dtype).view(-1, 1) - lse).exp().masked_fill(~lse.isfinite(), 0)
        return grads._replace(sinks=-(share * delta).sum((0, 2)).to(problem.sinks.dtype))


def _forward(problem: Problem, slab: Slab) -> tuple[Tensor, Tensor]:
    scores = slab.scores
    top = scores.amax(-1)  # [b, h, r]
    weights = torch.softmax(scores, -1, out=scores)
    # The largest weight is exp(top - lse), and at least 1 / columns: log loses nothing there.
    lse = top - weights.amax(-1).log()
    # Without a mask or a bias, only infinite inputs make a row of nothing but -inf.
    dead = (top == float("-inf")).unsqueeze(-1)
    if slab.allow is not None or problem.bias is not None or bool(dead.any()):
        weights.masked_fill_(dead, 0)
        lse.masked_fill_(dead.squeeze(-1), float("-inf"))
    if slab.keep is not None:
        weights.mul_(slab.keep)
    out = slab.product(slab.grouped(weights), slab.v).view(*slab.shape[:3], problem.d_v)
    if problem.sinks is not None:
        sink = problem.sinks[slab.heads].to(lse.dtype).view(-1, 1)
        total = torch.logaddexp(lse, sink)
        share = (lse - total).exp().masked_fill(lse == float("-inf"), 0).unsqueeze(-1)
        # What a row attends to marks it, however small its weight: 0 times Inf would be NaN.
        out = torch.where((share == 0) & ~out.isfinite(), out, out * share)
        lse = total
    if slab.keep is not None:
        out /= 1 - problem.dropout
    return out, lse


def rounded_off(lse: Tensor) -> bool:
    """Whether scores are so large that exp(score - lse) shows the rounding of lse by 0.001 or more: then
    weights are made by a softmax again. (Rows of nothing but finfo.min are of this kind.)"""
    limit = 1e-3 / torch.finfo(lse.dtype).eps
    if not lse.numel():
        return False
    low, high = torch.aminmax(lse)
    if low.item() >= -limit and high.item() <= limit:  # most often, and told by one look
        return False
    return bool((lse.abs() > limit).logical_and_(lse.isfinite()).any())


def _softmax(problem: Problem, slab: Slab) -> Tensor:
    scores = slab.scores
    if problem.sinks is not None:
        sink = problem.sinks[slab.heads].to(scores.dtype).view(-1, 1, 1)
        scores = torch.cat([scores, sink.expand(*scores.shape[:-1], 1)], -1)
    weights = torch.softmax(scores, -1)[..., : slab.strip.width]
    return weights.masked_fill(slab.scores == float("-inf"), 0)


def _backward(
    problem: Problem, slab: Slab, lse: Tensor, delta: Tensor, d_out: Tensor, grads: Grads, coarse: bool
) -> None:
    """With D = d_out V^T:  dS = P * (D - delta), dV = P^T d_out, dQ = scale dS K, dK = scale dS^T Q."""
    place = (slab.entries, slab.heads, slab.strip.rows)
    row_lse = lse[place].unsqueeze(-1)
    row_lse = row_lse.masked_fill(row_lse == float("-inf"), 0)  # exp(-inf - 0) = 0: nothing attended to
    weights = _softmax(problem, slab) if coarse else slab.scores.sub_(row_lse).exp_()
    values = slab.v
    if slab.live is not None:
        # A row that attends to a score of NaN is NaN, a constant: it sends nothing back.
        slab.live &= row_lse.isfinite()
        weights.masked_fill_(~slab.live, 0)
        values = torch.where(values.isfinite(), values, 0)
    d_part = slab.grouped(d_out[place].to(weights.dtype))  # [n, G r, d_v]
    d_weights = torch.bmm(d_part, values.mT).view(slab.shape)
    if slab.live is not None:
        d_weights.masked_fill_(~slab.live, 0)
    dropped = weights
    if slab.keep is not None:
        scale = 1 / (1 - problem.dropout)
        dropped = weights * slab.keep * scale
        d_weights.mul_(slab.keep).mul_(scale)
    d_v = slab.product(slab.grouped(dropped).mT, d_part, transposed=True)
    if slab.live is not None:
        delta[place] += (d_weights * weights).sum(-1)
    d_scores = d_weights.sub_(delta[place].unsqueeze(-1)).mul_(weights)
    if slab.live is not None:  # delta may be NaN, and 0 x NaN is NaN
        d_scores.masked_fill_(~slab.live, 0)
    if problem.bias is not None:
        _bias_backward(problem, slab, d_scores, grads)
    if slab.tanh is not None:
        slope = 1 - slab.tanh.square_()
        d_scores.mul_(slope if slab.live is None else slope.masked_fill_(~slab.live | slope.isnan(), 0))
    d_grouped, q, k = slab.grouped(d_scores), slab.q, slab.k
    if slab.live is not None:  # rows of q and k that aren't finite are constants
        q_ok, k_ok = finite_rows(q), finite_rows(k)
        d_grouped = torch.where(q_ok & k_ok.mT, d_grouped, 0)
        q, k = torch.where(q_ok, q, 0), torch.where(k_ok, k, 0)
    d_q = torch.bmm(d_grouped, k).mul_(problem.scale)
    d_k = torch.bmm(d_grouped.mT, q)  # q already holds the scale
    grads.q[place] = d_q.view(*slab.shape[:3], -1)
    _add_columns(grads.k, slab, d_k)
    _add_columns(grads.v, slab, d_v)


def _add_columns(total: Tensor, slab: Slab, part: Tensor) -> None:
    """total[entries, kv_heads, cols] += part [n, c, d]."""
    target = total[slab.entries, slab.kv_heads]
    part = part.view(*target.shape[:2], *part.shape[1:])
    cols = slab.strip.cols
    if isinstance(cols, slice):
        target[:, :, cols] += part
    else:
        target.index_add_(2, cols, part)


def _zeros(tensor: Tensor) -> Tensor:
    """Room for a gradient to which many blocks add: in float32 or better."""
    return torch.zeros_like(tensor, dtype=torch.promote_types(tensor.dtype, torch.float32))


def _bias_backward(problem: Problem, slab: Slab, d_scores: Tensor, grads: Grads) -> None:
    if problem.bias is None or not grads.bias:
        return
    frame = problem.frame
    whole = d_scores
    if d_scores.shape[1] != frame.heads:  # a bias wants all heads' gradients: zero for the others
        whole = d_scores.new_zeros(d_scores.shape[0], frame.heads, *d_scores.shape[2:])
        whole[:, slab.heads] = d_scores
    bias = problem.bias.select(frame.batch, slab.entries)
    into = problem.bias.with_tensors(*grads.bias).select(frame.batch, slab.entries).tensors()
    bias.backward(problem.select(slab.entries).frame, slab.strip.rows, slab.strip.cols, whole, into)
