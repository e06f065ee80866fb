"""What a kernel is: a way to compute one `Problem`.

Kernels of the first sort are made of operations that PyTorch differentiates. Those of the second sort
are a pair of plain functions, forward and backward, joined to autograd in one place (pair.py).
"""

from __future__ import annotations

from torch import Tensor

from headwise.kernels.problem import Problem


class Kernel:
    """A way to compute attention.

    Attributes:
        name: what users write in `kernel=`.
        linear_memory: whether memory stays linear in length for every problem it supports.
    """

    name: str
    linear_memory: bool

    def supports(self, problem: Problem) -> tuple[str, ...]:
        """Why this kernel refuses the problem, one reason each; empty if it takes it. Looks at sizes,
        types and options only, never at values."""
        raise NotImplementedError

    def passed_over(self, problem: Problem) -> str | None:
        """Why `auto` leaves a problem that this kernel would take to a later one; None if it doesn't. Like
        `supports`, it looks at sizes, types and options only."""
        return None

    def solve(self, problem: Problem) -> tuple[Tensor, Tensor]:
        """(out [B, H, q_len, d_v], lse [B, H, q_len]) of a flat problem, both differentiable."""
        raise NotImplementedError
