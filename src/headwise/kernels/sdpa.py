"""torch's fused CPU attention, held to the contract.

`scaled_dot_product_attention` lets NaN in masked keys through, aligns causal masks at the start, turns
to a quadratic path where its fused kernel doesn't fit, and forgets the log-sum-exp. So this kernel
calls the fused operation itself, strip by strip with the keys that the strip may attend to, and looks
at what comes back: where something isn't finite, the tiled kernel computes the call again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.kernels.blocks import Strip, allowed, fold, strips, within
from headwise.kernels.live import all_finite
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem
from headwise.kernels.tiled import Tiled, rounded_off
from headwise.masks import Allow, Causal
from headwise.masks.frame import Frame, Index

_HEIGHT = 256  # rows of a strip: taller ones compute more of what is masked, lower ones call more often
_ADDED = 1 << 22  # numbers of mask and bias at a time: 16 MiB of float32
_SMALL = 1 << 14  # scores per head below which a mask is applied without looking at its tiles
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
        folded = _folded(problem)
        out, lse = _forward(problem if folded is None else folded)
        # A row of nothing but NaN or -inf is 0 for the operation, and so is its log-sum-exp, by which we
        # know it (another row's log-sum-exp is hardly ever exactly 0; then the inputs decide).
        if not all_finite(out) or (bool((lse == 0).any()) and not all_finite(problem.q, problem.k)):
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
        if empty or d_lse is not None or problem.bias is not None or rounded_off(lse):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        if not all_finite(out, d_out):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        grads = _backward(problem, out, lse, d_out)
        if not all_finite(grads.q, grads.k, grads.v):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        return grads


def _folded(problem: Problem) -> Problem | None:
    """Grouped heads as more queries of fewer heads, where they all see the same keys: one call then
    serves the whole batch. None where that can't be said, or where it would copy queries for nothing."""
    frame, mask = problem.frame, problem.mask
    if problem.groups == 1 or problem.bias is not None or (frame.q_len > 1 and mask is not None):
        return None
    if frame.q_len > 1 and not problem.q.is_contiguous():
        return None
    rows = problem.groups * frame.q_len
    if mask is not None:
        allow = fold(mask.block(frame, slice(0, 1), slice(0, frame.k_len)))
        if allow.shape[1] > 1:
            return None
        mask = Allow(allow)
    q = problem.q.reshape(frame.batch[0], problem.kv_heads, rows, -1)
    folded = Frame.of(frame.batch, problem.kv_heads, rows, frame.k_len, device=frame.device)
    return replace(problem, q=q, frame=folded, mask=mask)


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
    dead: Tensor | None  # broadcastable to [n, m, rows]: rows that may attend to nothing, if there can be any
    causal: bool


def _plan(problem: Problem) -> Iterator[_Call]:
    frame, grouped = problem.frame, problem.groups > 1
    count, rows, cols = frame.batch[0], slice(0, frame.q_len), slice(0, frame.k_len)
    causal = _own_causal_will_do(problem)
    if causal or (problem.bias is None and (problem.mask is None or _newest_query(problem))):
        for entries in _entries(count, 1 if grouped else count):
            yield _Call(entries, rows, cols, None, None, causal)
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


def _newest_query(problem: Problem) -> bool:
    """Whether a causal mask hides nothing, as when one query follows its keys."""
    frame = problem.frame
    return (
        isinstance(problem.mask, Causal)
        and frame.q_start is not None
        and frame.k_start is not None
        and frame.q_start >= frame.k_start + frame.k_len - 1
    )


def _strip_calls(problem: Problem, first: int) -> Iterator[_Call]:
    entries = slice(first, first + problem.frame.batch[0])
    frame = problem.frame
    if frame.q_len * frame.k_len <= _SMALL:  # looking for keys to skip would cost more than it saves
        whole = slice(0, frame.k_len)
        found = iter([Strip(slice(0, frame.q_len), whole, None if problem.mask is None else whole)])
    else:
        found = _merged(strips(problem, _height(problem)), problem)
    for strip in found:
        if strip.cols is None:
            continue
        cols, added, dead = _added(problem, strip)
        if problem.groups > 1:
            added, dead = _by_group(problem, added), _by_group(problem, dead)
        yield _Call(entries, strip.rows, cols, added, dead, causal=False)


def _height(problem: Problem) -> int:
    """Rows of a strip: fewer where the mask or the bias has a block for each head or entry."""
    blocks = problem.frame.heads if problem.bias is not None else 1
    if problem.mask is not None and problem.by_batch():
        blocks *= problem.frame.batch[0]
    return max(16, min(_HEIGHT, _ADDED // (blocks * max(1, problem.frame.k_len))))


def _merged(found: Iterator[Strip], problem: Problem) -> Iterator[Strip]:
    """Join neighbours that want the same keys: fewer, larger calls are a little faster."""
    room = _ADDED // max(1, problem.frame.k_len) if problem.bias is None else 0
    last: Strip | None = None
    for strip in found:
        if last is None:
            last = strip
            continue
        same = isinstance(strip.cols, slice) and last.cols == strip.cols
        if same and last.height + strip.height <= room:
            part = strip.partial if last.partial is None else last.partial
            if strip.partial is not None and last.partial is not None:
                part = slice(
                    min(last.partial.start, strip.partial.start), max(last.partial.stop, strip.partial.stop)
                )
            last = Strip(slice(last.rows.start, strip.rows.stop), last.cols, part)
        else:
            yield last
            last = strip
    if last is not None:
        yield last


def _by_group(problem: Problem, block: Tensor | None) -> Tensor | None:
    """[1, H or 1, ...] -> [Hk or 1, G or 1, ...], as `_Call` wants it for grouped heads."""
    if block is None:
        return None
    heads = (problem.kv_heads, problem.groups) if block.shape[1] > 1 else (1, 1)
    return block[0].view(*heads, *block.shape[2:])


def _added(problem: Problem, strip: Strip) -> tuple[Index, Tensor | None, Tensor | None]:
    """The keys of a strip, mask and bias as numbers to add, and which rows may attend to nothing."""
    cols = strip.cols
    if cols is None:
        raise RuntimeError("a strip without columns is never computed")
    dtype, minus_inf = problem.score_dtype, float("-inf")
    added = None
    if problem.bias is not None:
        added = fold(problem.bias.block(problem.frame, strip.rows, cols)).to(dtype)
    allow = None
    if strip.partial is not None:
        allow = allowed(problem, strip.rows, within(cols, strip.partial))
    if allow is None or strip.partial is None:
        return cols, added, None if added is None else (added == minus_inf).all(-1)
    if added is None and allow.shape[:3] == (1, 1, 1):
        kept = _kept(strip, allow.flatten())
        if kept is not None:
            return within(cols, kept), None, None
    open_part = strip.partial.stop - strip.partial.start == strip.width
    if added is None and open_part:
        allow = allow.expand(*allow.shape[:2], strip.height, strip.width)
        numbers = torch.where(allow, 0.0, torch.full((), minus_inf, dtype=dtype))
        return cols, numbers, ~allow.any(-1)
    shape = (*allow.shape[:2], strip.height, strip.width)
    if added is None:
        added = torch.zeros(shape, dtype=dtype)
    else:
        added = added.expand(torch.broadcast_shapes(added.shape, shape)).clone()
    added[..., strip.partial].masked_fill_(~allow, minus_inf)
    return cols, added, (added == minus_inf).all(-1)


def _kept(strip: Strip, allow: Tensor) -> slice | None:
    """Which of a strip's keys are left, where the mask is the same for every row and leaves one run:
    taking those alone is faster than adding -inf to the rest."""
    if strip.partial is None:
        return None
    open_keys = torch.ones(strip.width, dtype=torch.bool)
    open_keys[strip.partial] = allow
    places = open_keys.nonzero().flatten()
    if not len(places):
        return None
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else None


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
