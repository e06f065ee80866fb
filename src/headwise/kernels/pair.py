"""Kernels that bring a forward and a backward function, and how autograd calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.kernels.base import Kernel
from headwise.kernels.problem import Problem
from headwise.kernels.reference import Reference
from headwise.kernels.transforms import carried, recorded


class Grads(NamedTuple):
    """Gradients of a flat problem; `bias` has one per entry of `problem.bias.tensors()`, or none where the
    bias is fixed (`problem.bias_fixed`)."""

    q: Tensor
    k: Tensor
    v: Tensor
    sinks: Tensor | None
    bias: tuple[Tensor, ...]

    def in_order(self) -> tuple[Tensor, ...]:
        """In the order of `Problem.differentiable()`."""
        return (self.q, self.k, self.v, *(() if self.sinks is None else (self.sinks,)), *self.bias)


class PairKernel(Kernel):
    """A kernel that is a pair of plain functions: a native one needs no more than that."""

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        """(out, lse) of a flat problem, computed without autograd."""
        raise NotImplementedError

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
    ) -> Grads:
        """Gradients from those of out and lse (None: zero), recomputing the weights from lse."""
        raise NotImplementedError

    def solve(self, problem: Problem) -> tuple[Tensor, Tensor]:
        tensors = problem.differentiable()
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            out, lse = _Solve.apply(self, problem, *tensors)  # type: ignore[no-untyped-call]
            return out, lse
        return self.forward(problem)


class _Solve(torch.autograd.Function):
    """Autograd's view of a pair kernel. Keeps the inputs, out and lse: memory linear in length."""

    @staticmethod
    def forward(ctx: Any, kernel: PairKernel, problem: Problem, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        out, lse = kernel.forward(problem)
        ctx.kernel = kernel
        # Without the tensors: they are autograd's to keep, and to free after the backward pass.
        ctx.shell = replace(problem, q=None, k=None, v=None, sinks=None)  # type: ignore[arg-type]
        ctx.has_sinks = problem.sinks is not None
        ctx.versions = _versions(problem)
        ctx.save_for_backward(out, lse, *tensors)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        out, lse, *tensors = ctx.saved_tensors
        if d_out is None and d_lse is None:
            return (None, None, *(None for _ in tensors))
        problem = ctx.shell.with_differentiable(tuple(tensors), has_sinks=ctx.has_sinks)
        if _versions(problem) != ctx.versions:
            raise RuntimeError(
                "a tensor of the mask, or the positions, was changed in place since the forward pass, and "
                "the gradient would be that of another call: hand over a copy (.clone()), or change it later"
            )
        again = torch.is_grad_enabled()
        if again or carried(d_out, d_lse) or recorded():
            grads_of = _grads_by_reference(ctx, problem, tensors, d_out, d_lse, again=again)
            return (None, None, *grads_of)
        if d_out is None:
            d_out = torch.zeros_like(out)
        wanted = ctx.needs_input_grad[2:]
        of_bias = 0 if problem.bias is None else len(problem.bias.tensors())
        fixed = not any(wanted[len(wanted) - of_bias :])
        problem = replace(problem, bias_fixed=fixed)
        grads: tuple[Tensor | None, ...] = ctx.kernel.backward(problem, out, lse, d_out, d_lse).in_order()
        grads += (None,) * (len(tensors) - len(grads))  # a fixed bias has none
        return (
            None,
            None,
            *(
                grad.to(tensor.dtype) if want and grad is not None else None
                for grad, tensor, want in zip(grads, tensors, wanted, strict=True)
            ),
        )


def _versions(problem: Problem) -> list[int]:
    """How often each tensor was changed in place that says who attends to whom; autograd looks at others."""
    if problem.mask is None and not problem.frame.given():
        return []
    given = problem.tensors()[len(problem.differentiable()) :]
    return [0 if x.is_inference() else x._version for x in given]


def _grads_by_reference(
    ctx: Any,
    problem: Problem,
    tensors: list[Tensor],
    d_out: Tensor | None,
    d_lse: Tensor | None,
    *,
    again: bool,
) -> tuple[Tensor | None, ...]:
    """Gradients by the reference kernel, whose operations can be differentiated `again` (`create_graph=True`)
    and carry on whatever stands behind a gradient: a batch of them, a tangent, or a recording. A kernel of
    addresses would see no numbers there, or drop the rest in silence."""
    if problem.strict:
        what = "a second derivative" if again else "a gradient that is batched, recorded or has a tangent"
        raise RuntimeError(
            f"{what} through the kernel {ctx.kernel.name!r} is computed by 'reference', whose memory grows "
            f"with q_len x k_len = {problem.frame.q_len} x {problem.frame.k_len}, and strict=True forbids "
            "that: pass strict=False if the memory is acceptable"
        )
    wanted = ctx.needs_input_grad[2:]
    sources = [t for t, want in zip(tensors, wanted, strict=True) if want]
    with torch.enable_grad():
        outputs = Reference().solve(problem)
    pairs = [(y, g) for y, g in zip(outputs, (d_out, d_lse), strict=True) if g is not None]
    grads = iter(
        torch.autograd.grad(
            [y for y, _ in pairs], sources, [g for _, g in pairs], create_graph=again, allow_unused=True
        )
    )
    return tuple(next(grads) if want else None for want in wanted)
