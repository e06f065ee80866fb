"""Whether a tensor's numbers lie in memory where they can be read by their address.

Compiled code that is handed addresses goes past torch's dispatcher, and so past all that lives there:
subclasses (which may hold their numbers elsewhere, or none at all), wrappers of transforms, tensors that only
look as if they had memory, and modes that record or replace operations. Reading such an address ends the
process, or gives numbers that are nobody's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

PLAIN = (Tensor, nn.Parameter)  # no subclass of theirs, whatever it does


def readable(x: Tensor) -> bool:
    """Whether x is a plain tensor with memory behind it."""
    if type(x) not in PLAIN:
        return False
    try:
        return x.data_ptr() != 0 or x.numel() == 0
    except RuntimeError:  # a transform's wrapper or a sparse tensor, of which torch gives no address
        return False


def address(x: Tensor) -> int:
    """Where the numbers of x lie; 0 where it has none.

    Raises:
        TypeError, RuntimeError: there is no such place. Callers ask `readable` first; this is for what they
            overlooked.
    """
    where: int = x.data_ptr() if type(x) in PLAIN else 0
    if where == 0 and x.numel() != 0:
        raise TypeError(
            f"a compiled kernel was handed {described(x)}, whose numbers can't be read from memory: pass "
            "kernel='tiled' or kernel='reference'"
        )
    return where


def described(x: Tensor) -> str:
    """What kind of tensor one is that isn't readable."""
    if type(x) not in PLAIN:
        return f"a {type(x).__name__}"
    if x.layout is not torch.strided:
        return f"a tensor of layout {x.layout}"
    return "a tensor without memory of its own"


def watched() -> bool:
    """Whether somebody records or replaces each of torch's operations: a dispatch mode (counters of FLOPs,
    fake tensors, `make_fx`) or `torch.jit.trace`."""
    return torch._C._len_torch_dispatch_stack() > 0 or torch._C._is_tracing()


def as_stored(x: Tensor) -> Tensor:
    """x with the sign in memory that it has: views of the imaginary part of a conjugate, among others, keep a
    minus as a bit beside the memory."""
    return x.resolve_neg() if x.is_neg() else x
