"""torch's fused CPU attention, held to the contract.

`scaled_dot_product_attention` lets NaN in masked keys through, aligns causal masks at the start, turns
to a quadratic path where its fused kernel doesn't fit, and forgets the log-sum-exp. So this kernel
calls the fused operation itself, strip by strip with the keys that the strip may attend to, and looks
at what comes back: where something isn't finite, the tiled kernel computes the call again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.kernels.blocks import Strip, allowed, fold, strips, within
from headwise.kernels.live import all_finite
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem
from headwise.kernels.tiled import Tiled
from headwise.masks import Causal
from headwise.masks.frame import Index

_HEIGHT = 256  # rows of a strip: taller ones compute more of what is masked, lower ones call more often
_TOGETHER = 1 << 20  # scores per head up to which batch entries with masks of their own share a strip


class TorchFused(PairKernel):
    name = "torch"
    linear_memory = True

    def supports(self, problem: Problem) -> tuple[str, ...]:
        reasons = []
        q, v = problem.q, problem.v
        if q.device.type != "cpu":
            reasons.append(f"it is the fused CPU operation, and the tensors are on {q.device.type!r}")
        if not hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu"):
            reasons.append(f"torch {torch.__version__} has no fused CPU operation")
        if q.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            reasons.append(f"dtype {q.dtype} is not float16, bfloat16, float32 or float64")
        if v.shape[-1] != q.shape[-1]:
            reasons.append(
                f"the fused operation wants d_v == d_k, and they are {v.shape[-1]} and {q.shape[-1]} "
                "(torch would take a path that holds the whole weight matrix)"
            )
        if q.shape[-1] == 0:
            reasons.append("d_k is 0")
        if problem.dropout:
            reasons.append(
                f"dropout={problem.dropout}: the fused operation has none "
                "(torch would take a path that holds the whole weight matrix)"
            )
        if problem.softcap is not None:
            reasons.append(f"softcap={problem.softcap}: the fused operation has none")
        if problem.sinks is not None:
            reasons.append("sinks: the fused operation has none")
        return tuple(reasons)

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        if problem.q.numel() == 0 or problem.k.numel() == 0:
            return Tiled().forward(problem)
        out, lse = _forward(problem)
        if not all_finite(out):
            return Tiled().forward(problem)
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
    ) -> Grads:
        empty = problem.q.numel() == 0 or problem.k.numel() == 0
        # The fused backward pass knows no gradient of lse or of a bias.
        if empty or d_lse is not None or problem.bias is not None or not all_finite(out, d_out):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        grads = _backward(problem, out, lse, d_out)
        if not all_finite(grads.q, grads.k, grads.v):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        return grads


@dataclass
class _Call:
    """One call of the fused operation: some batch entries, all heads, some rows against some keys.

    Tensors are [n, m, rows, d] with n, m = (entries, heads), or (key/value heads, groups) of one entry
    when heads are grouped: keys are then broadcast over groups by a stride of 0, not copied.
    """

    entries: slice
    rows: slice
    cols: Index
    added: Tensor | None  # mask and bias as numbers, broadcastable to [n, m, rows, cols]
    causal: bool

    def dead(self) -> Tensor | None:
        """[n, m, rows]: the rows that may attend to nothing, where there can be any."""
        return None if self.added is None else (self.added == float("-inf")).all(-1)


def _plan(problem: Problem) -> Iterator[_Call]:
    frame, grouped = problem.frame, problem.groups > 1
    count, rows, cols = frame.batch[0], slice(0, frame.q_len), slice(0, frame.k_len)
    causal = _own_causal_will_do(problem)
    if causal or (problem.mask is None and problem.bias is None):
        for entries in _entries(count, 1 if grouped else count):
            yield _Call(entries, rows, cols, None, causal)
        return
    together = count
    if grouped:
        together = 1
    elif problem.by_batch():
        together = max(1, _TOGETHER // max(1, frame.q_len * frame.k_len))
    if together >= count:
        yield from _strip_calls(problem, 0)
        return
    for entries in _entries(count, together):
        yield from _strip_calls(problem.at(entries), entries.start)


def _entries(count: int, together: int) -> Iterator[slice]:
    for first in range(0, count, max(1, together)):
        yield slice(first, min(first + together, count))


def _own_causal_will_do(problem: Problem) -> bool:
    """Whether the operation's causal mask, which aligns queries and keys at the start, says the same."""
    frame = problem.frame
    return (
        isinstance(problem.mask, Causal)
        and problem.bias is None
        and frame.q_start is not None
        and frame.q_start == frame.k_start
    )


def _strip_calls(problem: Problem, first: int) -> Iterator[_Call]:
    entries = slice(first, first + problem.frame.batch[0])
    for strip in strips(problem, _HEIGHT):
        if strip.cols is None:
            continue
        cols, added = _added(problem, strip)
        if added is not None and problem.groups > 1:  # [1, H or 1, r, c] -> [Hk or 1, G or 1, r, c]
            added = added[0]
            heads = (problem.kv_heads, problem.groups) if added.shape[0] > 1 else (1, 1)
            added = added.view(*heads, *added.shape[1:])
        yield _Call(entries, strip.rows, cols, added, causal=False)


def _added(problem: Problem, strip: Strip) -> tuple[Index, Tensor | None]:
    """Mask and bias of a strip as numbers to add, and the keys that are left."""
    cols = strip.cols
    if cols is None:
        raise RuntimeError("a strip without columns is never computed")
    dtype = problem.score_dtype
    added = None
    if problem.bias is not None:
        added = fold(problem.bias.block(problem.frame, strip.rows, cols)).to(dtype)
    if strip.partial is None:
        return cols, added
    allow = allowed(problem, strip.rows, within(cols, strip.partial))
    if allow is None:
        return cols, added
    if added is None and allow.shape[:3] == (1, 1, 1):
        # The same keys for every row: take those alone, which is faster than adding -inf to the rest.
        places = torch.arange(strip.width, device=allow.device)
        part = places[strip.partial][allow.flatten().expand(strip.partial.stop - strip.partial.start)]
        kept = torch.cat([places[: strip.partial.start], part, places[strip.partial.stop :]])
        if len(kept) and int(kept[-1]) - int(kept[0]) + 1 == len(kept):
            return within(cols, slice(int(kept[0]), int(kept[-1]) + 1)), None
        if len(kept):
            return cols_tensor(cols, allow.device)[kept], None
    shape = (*allow.shape[:2], strip.height, strip.width)
    if added is None:
        added = torch.zeros(shape, dtype=dtype, device=allow.device)
    else:
        added = added.expand(torch.broadcast_shapes(added.shape, shape)).clone()
    added[..., strip.partial].masked_fill_(~allow, float("-inf"))
    return cols, added


def cols_tensor(cols: Index, device: torch.device) -> Tensor:
    """Columns as an int64 tensor."""
    return torch.arange(cols.start, cols.stop, device=device) if isinstance(cols, slice) else cols


def _queries(problem: Problem, x: Tensor, call: _Call) -> Tensor:
    """The call's rows of a tensor [B, H, q_len, ...]."""
    part = x[call.entries, :, call.rows]
    return part if problem.groups == 1 else part[0].unflatten(0, (problem.kv_heads, problem.groups))


def _keys(problem: Problem, x: Tensor, call: _Call) -> Tensor:
    """The call's keys of a tensor [B, Hk, k_len, d]."""
    part = x[call.entries, :, call.cols]
    if problem.groups > 1:
        part = part[0].unsqueeze(1).expand(-1, problem.groups, -1, -1)
    return part


def _dense_last(x: Tensor) -> Tensor:
    # The operation reads the last dimension as if it had stride 1.
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _forward(problem: Problem) -> tuple[Tensor, Tensor]:
    frame = problem.frame
    q, k, v = (_dense_last(x) for x in (problem.q, problem.k, problem.v))
    out = lse = None
    for call in _plan(problem):
        part, part_lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            _queries(problem, q, call),
            _keys(problem, k, call),
            _keys(problem, v, call),
            0.0,
            call.causal,
            attn_mask=call.added,
            scale=problem.scale,
        )
        dead = call.dead()
        if dead is not None:
            part_lse = part_lse.masked_fill(dead, float("-inf"))
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
    d_q = torch.zeros_like(q, memory_format=torch.contiguous_format)
    # Strips add up, so the sums are kept in float32 whatever the inputs are.
    d_k = torch.zeros(k.shape, dtype=problem.score_dtype)
    d_v = torch.zeros(v.shape, dtype=problem.score_dtype)
    for call in _plan(problem):
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
        _queries(problem, d_q, call).copy_(part_q)
        for total, part in ((d_k, part_k), (d_v, part_v)):
            _add_keys(problem, total, call, part)
    return Grads(d_q, d_k, d_v, None, ())


def _add_keys(problem: Problem, total: Tensor, call: _Call, part: Tensor) -> None:
    if problem.groups > 1:
        part = part.sum(1, dtype=total.dtype).unsqueeze(0)
    target = total[call.entries]
    if isinstance(call.cols, slice):
        target[:, :, call.cols] += part
    else:
        target.index_add_(2, call.cols, part.to(total.dtype))
