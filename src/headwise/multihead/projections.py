"""A layer's linears, by oneDNN where torch would take a slower library.

For float32 products on x86, torch calls MKL, which on some processors leaves a part of the machine unused;
torch also carries oneDNN, to which only a global switch with another meaning sends them (it allows lower
precision). Here one private function asks for oneDNN's product of full precision, and nothing else in the
process changes. Only plain linears take this way: hooks, adapters, parametrizations, quantised or sharded
weights, autocast, compilation, transforms and counters see the module called as ever.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as modules

from headwise.kernels.addresses import readable, watched
from headwise.kernels.transforms import carried, transforming

_OPERATION = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
# (vendor, family): multiplications (rows x in x out) from which on oneDNN's product is faster than MKL's, by
# benchmarks/projections.py. Few rows never are.
_FASTER_FROM = {("AuthenticAMD", 25): 1 << 28}
_LEAST_ROWS = 64


def project(linear: nn.Module, x: Tensor) -> Tensor:
    """linear(x), and the same to the rounding of float32."""
    if not torch.compiler.is_compiling() and by_onednn(linear, x):
        y: Tensor = _Linear.apply(x, linear.weight, linear.bias)  # type: ignore[no-untyped-call]
        return y
    return cast("Tensor", linear(x))


def by_onednn(linear: nn.Module, x: Tensor) -> bool:
    """Whether `project` takes oneDNN: by sizes, types and what is attached, never by values or grad mode."""
    least = faster_from()
    if least is None or x.is_nested or not x.ndim:
        return False
    rows = x.numel() // max(1, x.shape[-1])
    if rows < _LEAST_ROWS or type(linear) is not nn.Linear or not readable(x):  # a step of a text ends here
        return False
    weight, bias = linear.weight, linear.bias
    return (
        rows * weight.numel() >= least
        and x.shape[-1] == weight.shape[-1]
        and x.dtype == weight.dtype == torch.float32
        and x.is_cpu
        and weight.is_cpu
        and type(weight) is nn.Parameter
        and readable(weight)
        and (bias is None or _fits(bias, weight))
        and torch._C._get_mkldnn_enabled()
        and _unwatched(linear)
        and not torch.is_autocast_enabled("cpu")
        and not transforming()
        and not watched()
        and torch._C._len_torch_function_stack() == 0
    )


@functools.cache
def faster_from() -> int | None:
    """Multiplications from which on oneDNN is faster on this processor; None: never, or not measured."""
    if (
        _OPERATION is None
        or not torch.backends.mkldnn.is_available()
        or not torch.backends.mkl.is_available()
    ):
        return None
    return _FASTER_FROM.get(processor())


def said() -> str:
    """Which library multiplies in a layer's linears, in words."""
    least = faster_from()
    if least is None:
        return "torch's own way (on this processor, oneDNN was not measured to be faster)"
    return (
        f"oneDNN in float32, from {_LEAST_ROWS} rows and {least:,} multiplications on; else torch's own way"
    )


@functools.cache
def processor() -> tuple[str, int]:
    """(vendor, family) of an x86 processor, as Linux tells them; ("", 0) elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "", 0
    told = dict.fromkeys(("vendor_id", "cpu family"), "")
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in told and not told[name.strip()]:
            told[name.strip()] = value.strip()
    family = told["cpu family"]
    return told["vendor_id"], int(family) if family.isdecimal() else 0


def _fits(bias: Tensor, weight: Tensor) -> bool:
    """Whether a bias is the plain one of a linear. Where it isn't, torch's own rules or errors are for it."""
    return (
        type(bias) is nn.Parameter
        and bias.dtype == weight.dtype
        and bias.shape == weight.shape[:1]
        and bias.is_cpu
        and readable(bias)
    )


def _unwatched(linear: nn.Module) -> bool:
    """Whether nobody would notice that the module wasn't called."""
    return not (
        linear._forward_hooks
        or linear._forward_pre_hooks
        or linear._backward_hooks
        or linear._backward_pre_hooks
        or modules._has_any_global_hook()
        or "forward" in linear.__dict__
        or nn.Linear.forward is not _FORWARD
        or nn.Linear.__call__ is not _CALL
    )


_FORWARD, _CALL = nn.Linear.forward, nn.Linear.__call__


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight^T + bias by oneDNN, [n, in] and [out, in] -> [n, out]."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


class _Linear(torch.autograd.Function):
    """y = x W^T + b;  dx = dy W,  dW = dy^T x,  db = sum dy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        # Gradients that are to be differentiated, or that stand for more than themselves (a batch of them, a
        # tangent): by operations that know of such things.
        product = F.linear if torch.is_grad_enabled() or watched() or carried(d_y) else _product
        rows = d_y.reshape(-1, d_y.shape[-1])
        d_x = product(d_y, weight.t()) if to_x else None
        d_weight = product(rows.t(), x.reshape(-1, x.shape[-1]).t()) if to_weight else None
        return d_x, d_weight, rows.sum(0) if to_bias else None
