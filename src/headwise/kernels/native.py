"""headwise's compiled kernel for CPUs, held to the contract.

Forward and backward, in float32 and bfloat16, written in C++ for several instruction sets
(src/headwise/native/csrc). It skips the tiles that a mask leaves empty, holds no matrix, and its results
don't depend on the number of threads. Where something in an output isn't finite, or in what a gradient is
made of, the tiled kernel computes it again: what is masked can't leak either way, but rows that do attend to
NaN have rules of their own.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from headwise.kernels.addresses import described, readable, watched
from headwise.kernels.native_build import MISSING, isa
from headwise.kernels.native_call import TYPES, backward, folded_bias, forward
from headwise.kernels.native_masks import untranslatable
from headwise.kernels.native_table import multiplications, slower_than_torch
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem
from headwise.kernels.sdpa import TorchFused
from headwise.kernels.tiled import Tiled, rounded_off
from headwise.positions.added import AddedScores

_MOST_KEYS = 2**31 - 1


class Native(PairKernel):
    name = "native"
    linear_memory = True

    def supports(self, problem: Problem) -> tuple[str, ...]:
        unread = _unread(problem) if problem.q.is_cpu else None
        if unread is not None:
            return (unread,)
        bias = None if type(problem.bias) is AddedScores else problem.bias
        reasons = refusals(
            problem.q.device.type, problem.q.dtype, None if bias is None else type(bias).__name__
        )
        against = untranslatable(problem.mask, problem.frame)
        if problem.frame.k_len > _MOST_KEYS:
            against = f"k_len={problem.frame.k_len}: it counts keys with 31 bits"
        return reasons if against is None else (*reasons, against)

    def passed_over(self, problem: Problem) -> str | None:
        used = isa()
        if used is None:
            return None
        work = multiplications(problem.q.shape, problem.v.shape)
        slower = slower_than_torch(used, problem.q.dtype, problem.frame.q_len, problem.groups, work)
        return None if slower is None or TorchFused().supports(problem) else slower

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        out, lse, finite = forward(problem)
        return (out, lse) if finite else Tiled().forward(problem)

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
    ) -> Grads:
        unread = watched() or not all(readable(x) for x in (out, lse, d_out, d_lse) if x is not None)
        if unread or rounded_off(lse) or _bias_of_rows(problem):
            return Tiled().backward(problem, out, lse, d_out, d_lse)
        grads, finite = backward(problem, out, lse, d_out, d_lse)
        return grads if finite else Tiled().backward(problem, out, lse, d_out, d_lse)


def _unread(problem: Problem) -> str | None:
    """Why the memory of a call's tensors isn't for it to read; None if it is."""
    for x in problem.tensors():
        if not readable(x):
            if not problem.holds_values:
                return "the tensors hold no values, and it reads their memory"
            return f"it reads the memory of plain tensors, and was given {described(x)}"
    if watched():
        return "a dispatch mode or torch.jit.trace wants to see every operation, and it has none"
    return None


@functools.lru_cache(maxsize=64)  # asked in every call, mostly the same
def refusals(device: str, dtype: torch.dtype, bias: str | None) -> tuple[str, ...]:
    reasons = []
    if MISSING is not None:
        reasons.append(MISSING)
    if device != "cpu":
        reasons.append(f"it is compiled for CPUs, and the tensors are on {device!r}")
    if dtype not in TYPES:
        reasons.append(f"dtype {dtype} is not float32 or bfloat16")
    if bias is not None:
        reasons.append(f"bias {bias}: it takes numbers in a tensor, and would hold the whole matrix")
    if not reasons:
        isa()  # raises where another instruction set is asked for than can be had
    return tuple(reasons)


def _bias_of_rows(problem: Problem) -> bool:
    """Whether a bias is learned that gives each row one number: the kernel adds up a bias's gradient with
    every column, which would be the whole matrix."""
    if problem.bias_fixed or not isinstance(problem.bias, AddedScores):
        return False
    *_, rows, columns = folded_bias(problem.bias).shape
    return rows > 1 and columns == 1 and problem.frame.k_len > 1
