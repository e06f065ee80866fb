"""Which kernel computes a problem, and why."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headwise.kernels.base import Kernel
from headwise.kernels.flex import Flex
from headwise.kernels.native import Native
from headwise.kernels.problem import Problem
from headwise.kernels.reference import Reference
from headwise.kernels.sdpa import TorchFused
from headwise.kernels.tiled import Tiled
from headwise.kernels.transforms import forward_mode, recorded, under_functions

# In the order in which `auto` asks them: the first that neither refuses nor passes computes the problem. A
# kernel that is to come takes its place in this list, and nothing else changes.
KERNELS: tuple[Kernel, ...] = (Native(), TorchFused(), Flex(), Tiled(), Reference())


@dataclass(frozen=True, repr=False)
class Choice:
    """The kernel that computes a problem; print it to see why, and what every other one says."""

    kernel: Kernel
    asked_for: str
    problem: Problem

    @property
    def refusals(self) -> dict[str, tuple[str, ...]]:
        """What each kernel says: its reasons to refuse, none if it would do (but comes later in line)."""
        return {kernel.name: reasons_against(kernel, self.problem) for kernel in KERNELS}

    def __str__(self) -> str:
        problem, name = self.problem, self.kernel.name
        how = "asked for" if self.asked_for != "auto" else "first in line that takes it"
        growth = "linear in length" if self.kernel.linear_memory else "grows with q_len x k_len"
        lines = [
            f"attention  q {_shape(problem.q)}  k {_shape(problem.k)}  v {_shape(problem.v)}  "
            f"{str(problem.q.dtype).removeprefix('torch.')} on {problem.q.device}",
            f"mask       {'none' if problem.mask is None else problem.mask.describe()}",
            f"kernel     {name} ({how}; memory {growth})",
        ]
        for other, reasons in self.refusals.items():
            if other == name:
                continue
            lines.append(f"  not {other:<10}{reasons[0] if reasons else self._would_do(other)}")
            lines.extend(f"      {'':<10}{reason}" for reason in reasons[1:])
        return "\n".join(lines)

    def _would_do(self, other: str) -> str:
        """Why a kernel that takes the problem isn't the one."""
        if self.asked_for != "auto":
            return f"it would do, but {self.asked_for!r} was asked for"
        against = named(other).passed_over(self.problem)
        return f"it would do, but {against or 'comes later in line'}"

    def __repr__(self) -> str:
        return str(self)


def choose(problem: Problem, kernel: str = "auto") -> Choice:
    """The kernel for a problem. Looks at sizes, types and options, never at values, grad mode or
    training mode.

    Raises:
        ValueError: an unknown name, a kernel that refuses the problem, or, with `strict`, one whose
            memory grows with q_len x k_len.
    """
    return Choice(pick(problem, kernel), kernel, problem)


def pick(problem: Problem, kernel: str = "auto") -> Kernel:
    """The kernel of `choose` alone."""
    if kernel == "auto":
        for taken in KERNELS:
            if not reasons_against(taken, problem) and taken.passed_over(problem) is None:
                break
    else:
        taken = named(kernel)
        reasons = reasons_against(taken, problem)
        if reasons:
            would = next(k.name for k in KERNELS if not reasons_against(k, problem))
            raise ValueError(
                f"kernel={kernel!r} refuses this call: {'; '.join(reasons)}. Pass kernel='auto', which takes "
                f"the first that can ({would!r} here)"
            )
    if problem.strict and not taken.linear_memory:
        others = _others(Choice(taken, kernel, problem))
        raise ValueError(
            f"strict=True, and the kernel that would run, {taken.name!r}, holds q_len x k_len = "
            f"{problem.frame.q_len} x {problem.frame.k_len} weights for each of {problem.frame.heads} heads: "
            f"pass strict=False to allow it. The others: {others}"
        )
    return taken


def named(name: str) -> Kernel:
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    known = ", ".join(["auto", *(kernel.name for kernel in KERNELS)])
    raise ValueError(f"kernel={name!r} is unknown: choose one of {known}")


def reasons_against(kernel: Kernel, problem: Problem) -> tuple[str, ...]:
    """Why `kernel` refuses the problem as it is called now; empty if it takes it."""
    transformed = () if isinstance(kernel, Reference) else under_transform(problem)
    own = kernel.supports(problem)
    return (*transformed, *own) if transformed else own


def under_transform(problem: Problem) -> tuple[str, ...]:
    """Only the reference kernel goes through torch.func transforms, forward-mode derivatives and recordings
    of its operations."""
    if under_functions():
        return ("under torch.func (vmap, grad, jvp, ...), only 'reference' can be transformed",)
    if forward_mode() and any(
        torch.autograd.forward_ad.unpack_dual(t).tangent is not None for t in problem.differentiable()
    ):
        return ("forward-mode derivatives: only 'reference' has them",)
    if recorded():
        return (
            "under torch.jit.trace, make_fx or fake tensors, only 'reference' decides nothing by a number",
        )
    return ()


def _others(choice: Choice) -> str:
    said = [
        f"{name}: {'; '.join(reasons)}"
        for name, reasons in choice.refusals.items()
        if name != choice.kernel.name and reasons
    ]
    return ". ".join(said) or "none refused"


def _shape(tensor: torch.Tensor) -> str:
    return "[" + ", ".join(str(size) for size in tensor.shape) + "]"
