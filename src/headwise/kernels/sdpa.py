"""torch's fused CPU attention, held to the contract.

`scaled_dot_product_attention` lets NaN in masked keys through, aligns causal masks at the start, turns
to a quadratic path where its fused kernel doesn't fit, and forgets the log-sum-exp. So this kernel
calls the fused operation itself, strip by strip with the keys that the strip may attend to, and looks
at what comes back: where something isn't finite, the tiled kernel computes the call again.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import torch
from torch import Tensor

from headwise.kernels.blocks import fold
from headwise.kernels.calls import Call, newest_query, plan
from headwise.kernels.direct import FUSED, can_stand
from headwise.kernels.live import all_numbers
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem
from headwise.kernels.tiled import Tiled, rounded_off
from headwise.masks import Allow
from headwise.masks.frame import Frame, Index

# Up to so many queries and keys the fused backward pass is faster in float32 than in 16 bits, whose small
# products it leaves to a slow routine: 29 ms against 55 at 12 x 100, 5 against 40 at 15 x 15 (AVX-512, bf16).
_SHORT = 256


class TorchFused(PairKernel):
    name = "torch"
    linear_memory = True

    def supports(self, problem: Problem) -> tuple[str, ...]:
        if not problem.holds_values:
            return ("the tensors hold no values, and it looks at those that come back",)
        mixed = problem.mixed()
        if mixed is not None:
            return (f"{mixed}: it writes results into tensors, which are of one class",)
        q = problem.q
        capped, sunk = problem.softcap, problem.sinks is not None
        return refusals(q.device.type, q.dtype, q.shape[-1], problem.d_v, problem.dropout, capped, sunk)

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        if problem.q.numel() == 0 or problem.k.numel() == 0:
            return Tiled().forward(problem)
        folded = _folded(problem)
        out, lse = _forward(problem if folded is None else folded)
        if not can_stand(out, lse, problem.q, problem.k):
            return Tiled().forward(problem)
        if folded is not None:
            out = out.reshape(*problem.q.shape[:-1], problem.d_v)
            lse = lse.reshape(problem.q.shape[:-1])
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
    ) -> Grads:
        empty = problem.q.numel() == 0 or problem.k.numel() == 0
        # The fused backward pass knows no gradient of lse or of a bias.
        learned = problem.bias is not None and not problem.bias_fixed
        if empty or d_lse is not None or learned or rounded_off(lse):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        if not (all_numbers(out) and all_numbers(d_out)):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        if problem.q.element_size() == 2 and max(problem.frame.q_len, problem.frame.k_len) <= _SHORT:
            grads = _in_float32(problem, out, lse, d_out)
        else:
            grads = _backward(problem, out, lse, d_out)
        if not all(all_numbers(grad) for grad in (grads.q, grads.k, grads.v)):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        return grads


@functools.lru_cache(maxsize=256)  # asked in every call, mostly the same
def refusals(
    device: str,
    dtype: torch.dtype,
    d_k: int,
    d_v: int,
    dropout: float,
    softcap: float | None,
    sinks: bool,
) -> tuple[str, ...]:
    reasons = []
    if device != "cpu":
        reasons.append(f"it is the fused CPU operation, and the tensors are on {device!r}")
    if FUSED is None:
        reasons.append(f"torch {torch.__version__} has no fused CPU operation")
    if dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        reasons.append(f"dtype {dtype} is not float16, bfloat16, float32 or float64")
    if d_v != d_k:
        reasons.append(
            f"the fused operation wants d_v == d_k, and they are {d_v} and {d_k} "
            "(torch would take a path that holds the whole weight matrix)"
        )
    if d_k == 0:
        reasons.append("d_k is 0")
    if dropout:
        reasons.append(
            f"dropout={dropout}: the fused operation has none "
            "(torch would take a path that holds the whole weight matrix)"
        )
    if softcap is not None:
        reasons.append(f"softcap={softcap}: the fused operation has none")
    if sinks:
        reasons.append("sinks: the fused operation has none")
    return tuple(reasons)


def _folded(problem: Problem) -> Problem | None:
    """Grouped heads as more queries of fewer heads, where they all see the same keys: one call then
    serves the whole batch. None where that can't be said, or where it would copy queries for nothing."""
    frame, mask = problem.frame, problem.mask
    if problem.groups == 1 or problem.bias is not None or (frame.q_len > 1 and mask is not None):
        return None
    if frame.q_len > 1 and not problem.q.is_contiguous():
        return None
    rows = problem.groups * frame.q_len
    if newest_query(problem):
        mask = None
    if mask is not None:
        allow = fold(mask.block(frame, slice(0, 1), slice(0, frame.k_len)))
        if allow.shape[1] > 1:
            return None
        mask = Allow(allow)
    q = problem.q.reshape(frame.batch[0], problem.kv_heads, rows, -1)
    folded = Frame.of(frame.batch, problem.kv_heads, rows, frame.k_len, device=frame.device)
    return replace(problem, q=q, frame=folded, mask=mask)


def _queries(problem: Problem, x: Tensor, call: Call) -> Tensor:
    """The call's rows of a tensor [B, H, q_len, ...]."""
    part = _cut(x, call.entries, call.rows)
    return part if problem.groups == 1 else part[0].unflatten(0, (problem.kv_heads, problem.groups))


def _keys(problem: Problem, x: Tensor, call: Call) -> Tensor:
    """The call's keys of a tensor [B, Hk, k_len, d]."""
    part = _cut(x, call.entries, call.cols)
    if problem.groups > 1:
        part = part[0].unsqueeze(1).expand(-1, problem.groups, -1, -1)
    return part


def _cut(x: Tensor, entries: slice, places: Index) -> Tensor:
    """x[entries, :, places]; x itself where that is all of it, since many calls want the whole."""
    if isinstance(places, slice):
        lengths = (entries.stop - entries.start, places.stop - places.start)
        if lengths == (x.shape[0], x.shape[2]):
            return x
    return x[entries, :, places]


def _dense_last(x: Tensor) -> Tensor:
    # The operation reads the last dimension as if it had stride 1. Zeros without memory (autograd's) would
    # reach it as one number with strides of 0, whatever strides they tell.
    if x._is_zerotensor():
        x = x.new_zeros(x.shape)
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _forward(problem: Problem) -> tuple[Tensor, Tensor]:
    frame = problem.frame
    q, k, v = (_dense_last(x) for x in (problem.q, problem.k, problem.v))
    out = lse = None
    for call in plan(problem):
        part, part_lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            _queries(problem, q, call),
            _keys(problem, k, call),
            _keys(problem, v, call),
            0.0,
            call.causal,
            attn_mask=call.added,
            scale=problem.scale,
        )
        if call.dead is not None:
            part_lse = part_lse.masked_fill(call.dead, float("-inf"))
        if part.shape == problem.q.shape:
            return part, part_lse  # one call was the whole
        if out is None or lse is None:
            out = v.new_zeros(*frame.batch, frame.heads, frame.q_len, problem.d_v)
            lse = q.new_full(out.shape[:-1], float("-inf"), dtype=problem.score_dtype)
        _queries(problem, out, call).copy_(part)
        _queries(problem, lse, call).copy_(part_lse)
    if out is None or lse is None:  # nobody may attend to anything
        return Tiled().forward(problem)
    return out, lse


def _backward(problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor) -> Grads:
    q, k, v, out, d_out = (_dense_last(x) for x in (problem.q, problem.k, problem.v, out, d_out))
    raw_lse = lse.masked_fill(lse == float("-inf"), 0)  # what the operation itself says of such rows
    sums: tuple[Tensor, Tensor, Tensor] | None = None
    for call in plan(problem):
        part_q, part_k, part_v = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            _queries(problem, d_out, call),
            _queries(problem, q, call),
            _keys(problem, k, call),
            _keys(problem, v, call),
            _queries(problem, out, call),
            _queries(problem, raw_lse, call),
            0.0,
            call.causal,
            attn_mask=call.added,
            scale=problem.scale,
        )
        if part_q.shape == problem.q.shape and part_k.shape == problem.k.shape:
            return Grads(part_q, part_k, part_v, None, ())
        sums = sums or _zeros(problem)
        _queries(problem, sums[0], call).copy_(part_q)
        for total, part in zip(sums[1:], (part_k, part_v), strict=True):
            _add_keys(problem, total, call, part)
    return Grads(*(sums or _zeros(problem)), None, ())


def _in_float32(problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor) -> Grads:
    """`_backward`, computed in float32; the gradients come back in the problem's own dtype."""
    dtype = problem.q.dtype
    wide = replace(problem, q=problem.q.float(), k=problem.k.float(), v=problem.v.float())
    grads = _backward(wide, out.float(), lse, d_out.float())
    return Grads(grads.q.to(dtype), grads.k.to(dtype), grads.v.to(dtype), None, ())


def _zeros(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Where calls write gradients of q, and add up those of k and v: in float32 whatever the inputs are."""
    k, v, dtype = problem.k, problem.v, problem.score_dtype
    return (
        problem.q.new_zeros(problem.q.shape),
        k.new_zeros(k.shape, dtype=dtype),
        v.new_zeros(v.shape, dtype=dtype),
    )


def _add_keys(problem: Problem, total: Tensor, call: Call, part: Tensor) -> None:
    if problem.groups > 1:
        part = part.sum(1, dtype=total.dtype).unsqueeze(0)
    target = total[call.entries]
    if isinstance(call.cols, slice):
        target[:, :, call.cols] += part
    else:
        target.index_add_(2, call.cols, part.to(total.dtype))
