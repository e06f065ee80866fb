"""Attention as one operation of a compiled or exported graph.

Kernels skip what is masked, which needs a look at values; a graph has no place for that. So while
PyTorch traces, the call becomes one opaque operation, `headwise::attention`, which chooses a kernel
when the graph runs. It has a shape rule and a gradient, and takes dynamic sizes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.kernels.choose import pick
from headwise.kernels.packing import pack, unpack
from headwise.kernels.pair import PairKernel
from headwise.kernels.problem import Problem, score_dtype
from headwise.masks.frame import Frame


def solve_compiled(problem: Problem, kernel: str) -> tuple[Tensor, Tensor]:
    """`solve` of a flat problem while PyTorch traces."""
    masks: list[Tensor] = []
    biases: list[Tensor] = []
    frame = problem.frame
    out, lse = torch.ops.headwise.attention(
        problem.q,
        problem.k,
        problem.v,
        problem.sinks,
        problem.seed,
        None if frame.q_start is not None else frame.q_pos,
        None if frame.k_start is not None else frame.k_pos,
        0 if frame.q_start is None else frame.q_start,
        0 if frame.k_start is None else frame.k_start,
        pack(problem.mask, masks),
        masks,
        pack(problem.bias, biases),
        biases,
        problem.scale,
        problem.softcap,
        problem.dropout,
        kernel,
        problem.strict,
    )
    return out, lse


def _problem(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None,
    seed: Tensor | None,
    q_pos: Tensor | None,
    k_pos: Tensor | None,
    q_start: int,
    k_start: int,
    mask: str,
    mask_tensors: list[Tensor],
    bias: str,
    bias_tensors: list[Tensor],
    scale: float,
    softcap: float | None,
    dropout: float,
    kernel: str,
    strict: bool,
) -> Problem:
    sizes = (q.shape[0],), q.shape[1], q.shape[2], k.shape[2]
    frame = Frame(*sizes, q_start=q_start, k_start=k_start, q_pos=q_pos, k_pos=k_pos, device=q.device)
    return Problem(
        q,
        k,
        v,
        frame,
        scale=scale,
        mask=unpack(mask, mask_tensors),
        bias=unpack(bias, bias_tensors),
        softcap=softcap,
        sinks=sinks,
        dropout=dropout,
        seed=seed,
        strict=strict,
    )


_ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? sinks, Tensor? seed, Tensor? q_pos, Tensor? k_pos, "
    "SymInt q_start, SymInt k_start, str mask, Tensor[] mask_tensors, str bias, Tensor[] bias_tensors, "
    "float scale, float? softcap, float dropout, str kernel, bool strict"
)
_NAMES = [argument.split()[1] for argument in _ARGUMENTS.split(", ")]
_SINKS, _MASK_TENSORS, _BIAS_TENSORS, _KERNEL = (
    _NAMES.index(name) for name in ("sinks", "mask_tensors", "bias_tensors", "kernel")
)


def _attention(*arguments: Any) -> tuple[Tensor, Tensor]:
    problem = _problem(*arguments)
    out, lse = pick(problem, arguments[_KERNEL]).solve(problem)
    return out.contiguous(), lse.contiguous()


def _attention_fake(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    shape = (q.shape[0], q.shape[1], q.shape[2])
    return v.new_empty(*shape, v.shape[3]), q.new_empty(shape, dtype=score_dtype(q.dtype))


def _backward(
    d_out: Tensor | None, d_lse: Tensor | None, out: Tensor, lse: Tensor, *arguments: Any
) -> list[Tensor]:
    problem = _problem(*arguments)
    kernel = pick(problem, arguments[_KERNEL])
    tensors = problem.differentiable()
    if isinstance(kernel, PairKernel):
        if d_out is None:
            d_out = torch.zeros_like(out)
        grads = kernel.backward(problem, out, lse, d_out, d_lse).in_order()
        return [g.to(t.dtype).contiguous() for g, t in zip(grads, tensors, strict=True)]
    leaves = tuple(t.detach().requires_grad_() for t in tensors)
    with torch.enable_grad():
        again = kernel.solve(problem.with_differentiable(leaves, has_sinks=problem.sinks is not None))
    pairs = [(y, g) for y, g in zip(again, (d_out, d_lse), strict=True) if g is not None]
    grads = torch.autograd.grad(
        [y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True, materialize_grads=True
    )
    return [g.contiguous() for g in grads]


def _backward_fake(
    d_out: Tensor | None, d_lse: Tensor | None, out: Tensor, lse: Tensor, *arguments: Any
) -> list[Tensor]:
    q, k, v, sinks, *_ = arguments
    tensors = [q, k, v, *([] if sinks is None else [sinks]), *arguments[_BIAS_TENSORS]]
    return [torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    # Lists of tensors are saved flat, and their lengths beside them.
    flat: list[Tensor | None] = []
    shape: list[Any] = []
    for value in inputs:
        if isinstance(value, Tensor):
            shape.append("tensor")
            flat.append(value)
        elif isinstance(value, list | tuple):
            shape.append(len(value))
            flat.extend(value)
        else:
            shape.append((value,))
    ctx.inputs_as = shape
    ctx.save_for_backward(*output, *flat)
    ctx.set_materialize_grads(False)


def _autograd(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Any, ...]:
    out, lse, *flat = ctx.saved_tensors
    arguments: list[Any] = []
    for kind in ctx.inputs_as:
        if kind == "tensor":
            arguments.append(flat.pop(0))
        elif isinstance(kind, int):
            arguments.append([flat.pop(0) for _ in range(kind)])
        else:
            arguments.append(kind[0])
    answer: list[Any] = [None] * len(arguments)
    if d_out is None and d_lse is None:
        return tuple(answer)
    grads = list(torch.ops.headwise.attention_backward(d_out, d_lse, out, lse, *arguments))
    answer[:3] = [grads.pop(0), grads.pop(0), grads.pop(0)]
    if arguments[_SINKS] is not None:
        answer[_SINKS] = grads.pop(0)
    answer[_MASK_TENSORS] = [None] * len(arguments[_MASK_TENSORS])
    answer[_BIAS_TENSORS] = grads
    return tuple(answer)


torch.library.define("headwise::attention", f"({_ARGUMENTS}) -> (Tensor, Tensor)")
torch.library.define(
    "headwise::attention_backward",
    f"(Tensor? d_out, Tensor? d_lse, Tensor out, Tensor lse, {_ARGUMENTS}) -> Tensor[]",
)
torch.library.impl("headwise::attention", "CompositeExplicitAutograd", _attention)
torch.library.impl("headwise::attention_backward", "CompositeExplicitAutograd", _backward)
torch.library.register_fake("headwise::attention", _attention_fake)
torch.library.register_fake("headwise::attention_backward", _backward_fake)
torch.library.register_autograd("headwise::attention", _autograd, setup_context=_setup_context)
