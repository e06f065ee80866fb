"""What this CPU does at most, as ways like any other, so that it is timed in turn with what is held to it.

"peak" multiplies and adds numbers in registers by the instruction that the compiled kernel's products are
made of: the fused one of float32, or for bfloat16 the dot product of pairs where the CPU has it. "reading"
merely reads tensors. Both are compiled with the kernel (csrc/limits.hpp), for the instruction set in use, and
run on as many threads; without the compiled kernel there is neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from benchmarks.common import Way
from headwise.kernels.native_build import native
from headwise.kernels.native_call import TYPES, follow_torchs_threads

PEAK, READING = "peak", "reading"


def peak(dtype: torch.dtype) -> list[Way]:
    """The way that makes `operations(dtype)` at each call; none without the compiled kernel."""
    if native is None:
        return []
    return [Way(PEAK, lambda _: native.multiply_add(TYPES[dtype]), follow_torchs_threads)]


def operations(dtype: torch.dtype) -> float:
    """How many a call of `peak` makes, 2 for each product."""
    return float(native.multiply_add(TYPES[dtype]))


def reading(tensors: Sequence[torch.Tensor]) -> list[Way]:
    """The way that reads all of these contiguous tensors, whose sizes are multiples of 4 bytes."""
    if native is None:
        return []

    def read(_: object) -> None:
        for x in tensors:
            native.read_memory(x.data_ptr(), x.nbytes // 4)

    return [Way(READING, read, follow_torchs_threads)]
