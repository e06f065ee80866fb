"""The short way to the two kernels of CPUs, for calls without options.

A call's checks and choices cost 0.15 ms in a loop of their own, but 0.5 ms where the products of the call
before have emptied the processor's caches: 7 % of one sequence of 512. So inference without options takes
this way, on which the same rules are asked once for all calls of the same sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.kernels.addresses import readable, watched
from headwise.kernels.check import Kinds, check_kinds, kinds_of
from headwise.kernels.direct import direct
from headwise.kernels.native import refusals as native_refusals
from headwise.kernels.native_build import isa
from headwise.kernels.native_call import forward_plain
from headwise.kernels.native_table import multiplications, slower_than_torch
from headwise.kernels.sdpa import refusals
from headwise.kernels.transforms import transforming
from headwise.masks import Causal
from headwise.masks.base import Mask


def solve_plain(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, *, at_start: bool) -> Tensor | None:
    """What `auto` would return, to the bit, for a call with at most a causal mask and no gradient.

    None where this way isn't for the call: the caller then goes the long one, with its checks and its care
    for what isn't finite.

    Args:
        at_start: queries are aligned with the keys at their start
    """
    if torch.compiler.is_compiling() or not (type(q) is type(k) is type(v) is Tensor):
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return None
    if transforming() or watched():
        return None
    causal = type(mask) is Causal
    if mask is not None and not causal:
        return None
    way = plain_kernel(q, k, v, causal, at_start)
    if way is None:
        return None
    scale = q.shape[-1] ** -0.5
    causal = causal and not _newest(q.shape, at_start)
    if way == "native":
        return forward_plain(q, k, v, scale, _ahead(q.shape, k.shape, at_start) if causal else None)
    return direct(q, k, v, scale, None, causal=causal)


def plain_kernel(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, at_start: bool = False) -> str | None:
    """The kernel, "native" or "torch", of a call without options; None where it isn't one call of either, or
    a tensor isn't plain."""
    if not (readable(q) and readable(k) and readable(v)):
        return None
    try:
        kinds = kinds_of(q, k, v)
    except RuntimeError:  # a nested tensor has no shape
        return None
    return _way(kinds, causal, at_start, isa())


@functools.lru_cache(maxsize=256)
def _way(kinds: Kinds, causal: bool, at_start: bool, isa: str | None) -> str | None:
    """The kernel of a call that passes the checks and is one call of it, by the rules of the long way."""
    try:
        check_kinds(kinds)
    except (TypeError, ValueError):
        return None
    q, k, v, dtype, _, _, device, _, _ = kinds
    if not len(q) == len(k) == len(v) == 4 or not q[0] == k[0] == v[0] or not q[-1]:
        return None
    way = kernel_of_sizes(device.type, dtype, q, k, v, isa)
    causal = causal and not _newest(q, at_start)
    return way if way == "native" or q[-2] == k[-2] or at_start or not causal else None


def kernel_of_sizes(
    device: str, dtype: torch.dtype, q: Sequence[int], k: Sequence[int], v: Sequence[int], isa: str | None
) -> str | None:
    """The kernel, "native" or "torch", of a call without options and of these sizes, known to fit each other;
    None where it is neither, or several calls of torch's. `isa` is that of the compiled kernel in use.

    Nothing is looked up by sizes here: those of the steps of a text are others each time.
    """
    torchs = refusals(device, dtype, q[-1], v[-1], 0.0, None, sinks=False)
    if isa is not None and not native_refusals(device, dtype, None):
        groups = q[1] // k[1] if k[1] else 1
        if torchs or slower_than_torch(isa, dtype, q[-2], groups, multiplications(q, v)) is None:
            return "native"
    return "torch" if q[1] == k[1] and not torchs else None


def _newest(q: Sequence[int], at_start: bool) -> bool:
    """Whether a causal mask hides nothing: one query, which stands with the last key."""
    return q[-2] == 1 and not at_start


def _ahead(q: torch.Size, k: torch.Size, at_start: bool) -> int:
    """How many keys stand before the first query's own."""
    return 0 if at_start else k[-2] - q[-2]
