"""Linears of layers and models, by oneDNN where torch would take a slower library.

For float32 products on x86, torch calls MKL, which on some processors leaves a part of the machine unused;
torch also carries oneDNN, to which only a global switch with another meaning sends them (it allows lower
precision). Here one private function asks for oneDNN's product of full precision, and nothing else in the
process changes. Only plain linears take this way: hooks, adapters, parametrizations, quantised or sharded
weights, autocast, compilation, transforms and counters see torch's own operations called as ever.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, TypeGuard, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as modules

from headwise.kernels.addresses import readable, watched
from headwise.kernels.transforms import carried, transforming

_OPERATION = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
# (vendor, family): multiplications (rows x in x out) from which on oneDNN's products with a weight are faster
# than MKL's, by benchmarks/projections.py. From a half of that on they are hardly slower; but oneDNN prepares
# each number of rows when it first comes, which takes some 0.5 ms: here, what a few products save.
_FASTER_FROM = {("AuthenticAMD", 25): 1 << 26}
_LEAST_ROWS = 64  # few rows never are


def project(linear: nn.Module, x: Tensor) -> Tensor:
    """linear(x), and the same to the rounding of float32."""
    if not torch.compiler.is_compiling() and by_onednn(linear, x):
        return _product(x, linear.weight, linear.bias)
    return cast("Tensor", linear(x))


def project_by(weight: Tensor, x: Tensor) -> Tensor:
    """F.linear(x, weight), and the same to the rounding of float32: x weight^T, for a weight [out, in] that
    is no linear's."""
    if not torch.compiler.is_compiling() and weight_by_onednn(weight, x):
        return _product(x, weight, None)
    return F.linear(x, weight)


def by_onednn(linear: nn.Module, x: Tensor) -> TypeGuard[nn.Linear]:
    """Whether `project` takes oneDNN: by sizes, types and what is attached, never by values or grad mode."""
    return (
        _has_many_rows(x)  # a step of a text ends here
        and type(linear) is nn.Linear
        and _unwatched(linear)
        and _fit(x, linear.weight, linear.bias)
    )


def weight_by_onednn(weight: Tensor, x: Tensor) -> bool:
    """Whether `project_by` takes oneDNN, by the same."""
    return _has_many_rows(x) and _fit(x, weight, None)


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
    """Which library multiplies in linears of layers and models, in words."""
    least = faster_from()
    if least is None:
        return "torch's own way (on this processor, oneDNN was not measured to be faster)"
    return (
        f"oneDNN in float32, from {_LEAST_ROWS} rows and {least:,} multiplications on; else, and for "
        "gradients of weights, torch's own way"
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


def _has_many_rows(x: Tensor) -> bool:
    if faster_from() is None or x.is_nested or not x.ndim:
        return False
    return x.numel() // max(1, x.shape[-1]) >= _LEAST_ROWS


def _fit(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether oneDNN's product is worth its while, and nobody would notice another operation than torch's."""
    least = faster_from()
    return (
        least is not None
        and readable(x)
        and weight.ndim == 2
        and x.shape[-1] == weight.shape[1]
        and x.numel() * weight.shape[0] >= least
        and x.dtype == weight.dtype == torch.float32
        and x.is_cpu
        and weight.is_cpu
        and type(weight) is nn.Parameter
        and readable(weight)
        and (bias is None or _fits(bias, weight))
        and torch._C._get_mkldnn_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not transforming()
        and not watched()
        and torch._C._len_torch_function_stack() == 0
        and F.linear is _LINEAR
    )


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


_FORWARD, _CALL, _LINEAR = nn.Linear.forward, nn.Linear.__call__, F.linear  # profilers replace them


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return y


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight^T + bias, [..., in] and [out, in] -> [..., out]."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


class _Linear(torch.autograd.Function):
    """y = x W^T + b;  dx = dy W,  dW = dy^T x,  db = sum dy.

    dW is torch's own product: both of its sides lie across, and oneDNN was not faster there at most sizes.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        to_x, to_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if to_weight else None, weight if to_x else None)  # as torch: no more
        return _multiply(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        # Gradients that are to be differentiated, or that stand for more than themselves (a batch of them, a
        # tangent): by operations that know of such things.
        product = F.linear if torch.is_grad_enabled() or watched() or carried(d_y) else _multiply
        rows = d_y.reshape(-1, d_y.shape[-1])
        d_x = None if weight is None else product(d_y, weight.t())
        d_weight = None if x is None else rows.t() @ x.reshape(-1, x.shape[-1])
        return d_x, d_weight, rows.sum(0) if ctx.needs_input_grad[2] else None
