"""Whoever transforms, records or watches operations sees those of kernels that go through torch's dispatcher,
never the compiled one's, of which there is nothing to see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from native_inputs import call, drawn, plain, watch_calls
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

import headwise as hw
from headwise.attention import problem
from headwise.kernels import sdpa
from headwise.kernels.choose import named, reasons_against
from headwise.kernels.native_build import native

pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch_calls(monkeypatch)


# Transforms and recordings


@pytest.mark.parametrize("kernel", ["native", "tiled", "torch", "auto"])
@pytest.mark.parametrize("options", [{}, {"dropout": 0.3, "sinks": True}, {"bias": True}])
def test_gradients_of_a_whole_batch(kernel: str, options: dict[str, Any]) -> None:
    """By `is_grads_batched`, by vmap over a backward pass, and with tangents: what is dropped here is dropped
    in silence."""
    if kernel == "torch" and "dropout" in options:
        pytest.skip("the fused operation has neither")
    leaves = {name: x[:, :, :17].requires_grad_() for name, x in drawn().items()}
    sources = list(leaves.values())
    options = dict(options)
    for name, value in (("bias", torch.randn(17, 17)), ("sinks", torch.randn(4))):
        if options.get(name):
            options[name] = value.requires_grad_()
            sources.append(value)
    fixed = {"generator": torch.Generator().manual_seed(1)} if "dropout" in options else {}
    out = call(leaves, kernel=kernel, **options, **fixed)  # type: ignore[arg-type]
    several = torch.randn(3, *out.shape, generator=torch.Generator().manual_seed(4))

    def grads(d_out: Tensor, **how: Any) -> tuple[Tensor, ...]:
        return torch.autograd.grad(out, sources, d_out, retain_graph=True, **how)

    wanted = [grads(one) for one in several]
    batched, mapped = grads(several, is_grads_batched=True), torch.func.vmap(grads)(several)
    for got in (batched, mapped):
        for number, want in enumerate(wanted):
            for mine, right in zip(got, want, strict=True):
                torch.testing.assert_close(mine[number], right, rtol=1e-4, atol=1e-5)
    with forward_ad.dual_level():
        duals = grads(forward_ad.make_dual(several[0], several[1]))
        tangents = [forward_ad.unpack_dual(dual).tangent for dual in duals]
    for mine, right in zip(tangents, wanted[1], strict=True):  # gradients are linear in that of the output
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-5)


def test_strict_forbids_what_only_the_reference_kernel_computes() -> None:
    leaves = {name: x.requires_grad_() for name, x in drawn().items()}
    out = call(leaves, kernel="native", strict=True)
    with pytest.raises(RuntimeError, match=r"batched, recorded or has a tangent.*'native'.*strict=True"):
        torch.autograd.grad(out, leaves["q"], torch.ones(2, *out.shape), is_grads_batched=True)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("grad", [False, True])
def test_make_fx_records_what_can_be_run_again(mode: str, grad: bool, calls: list[str]) -> None:
    """With other numbers. What was recorded of the compiled kernel was room that nobody filled."""

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q = q.detach().requires_grad_(grad)
        out = hw.attention(q, k, v, mask=hw.Causal(), bias=torch.zeros(64, 64))
        return torch.autograd.grad(out.square().sum(), q)[0] if grad else out

    recorded = make_fx(function, tracing_mode=mode)(*drawn().values())
    assert calls == []
    other = drawn(seed=5).values()
    torch.testing.assert_close(recorded(*other), function(*other), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_jit_trace_records_what_can_be_run_again(calls: list[str]) -> None:
    layer = hw.MultiHeadAttention(128, 4).requires_grad_(False)
    x, other = torch.randn(2, 4, 64, 128), torch.randn(2, 4, 64, 128)
    functions = (
        lambda x: hw.attention(x, x, x, mask=hw.Causal()),
        lambda x: layer(x[:, 0], mask=hw.Causal()),
        lambda x: hw.attention(x, x, x, bias=x[0, 0, :, :64], observe=[hw.LogSumExp()])[1].log_sum_exp,
    )
    for function in functions:
        calls.clear()
        traced = torch.jit.trace(function, (x,), check_trace=False)
        assert calls == []
        torch.testing.assert_close(traced(other), function(other), rtol=1e-4, atol=1e-4)


class Logged(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_every_operation(calls: list[str]) -> None:
    """In the forward pass, in a backward pass of what the compiled kernel computed, and in a layer's step."""
    leaves = {name: x.requires_grad_() for name, x in drawn().items()}
    out = call(leaves)
    assert calls == ["forward"]
    with Logged() as log:
        assert "wants to see" in reasons_against(named("native"), problem(**leaves))[0]  # type: ignore[arg-type]
        torch.testing.assert_close(call(leaves), out)
        with torch.no_grad():
            torch.testing.assert_close(call(leaves), out.detach())
        got = torch.autograd.grad(out.square().sum(), list(leaves.values()))
    assert calls == ["forward"]
    assert any(sdpa.FUSED is not None and "flash" in one for one in log.seen)
    want = torch.autograd.grad(call(leaves).square().sum(), list(leaves.values()))
    for mine, right in zip(got, want, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-5)


def test_a_step_with_weights_that_are_no_plain_tensors(calls: list[str]) -> None:
    """The next step of a text has a way of its own to the kernel."""
    layer = hw.MultiHeadAttention(256, 4).eval()
    x = torch.randn(1, 300, 256)
    found = []
    with torch.no_grad():
        for kind in ("plain", "subclass"):
            if kind == "subclass":
                for linear in (layer.q_proj, layer.k_proj, layer.v_proj):
                    weight = linear.weight.detach()
                    linear.weight = nn.Parameter(TwoTensor(weight, weight.clone()))
                calls.clear()
            cache = hw.GrowingCache()
            layer(x, mask=hw.Causal(), cache=cache)
            found.append(plain(layer(x[:, :1], mask=hw.Causal(), cache=cache)))
    assert calls == []
    torch.testing.assert_close(*found)
