"""Linears by oneDNN: the same numbers, and out of the way wherever somebody looks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrizations
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import headwise as hw
from headwise.multihead import projections
from headwise.multihead.projections import by_onednn, project, said, weight_by_onednn

pytestmark = pytest.mark.usefixtures("products")


def drawn() -> tuple[nn.Linear, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Linear(7, 5), torch.randn(2, 3, 7)


def test_it_gives_the_product_and_its_gradients() -> None:
    linear, x = drawn()
    for bias in (True, False):
        if not bias:
            linear.bias = None
        for given in (x, x.transpose(0, 1), x.expand(3, 2, 3, 7), x[0, :2], x[:, ::2]):
            assert by_onednn(linear, given)
            exact = copy.deepcopy(linear).double()
            one, other = given.clone().requires_grad_(), given.double().requires_grad_()
            y, want = project(linear, one), exact(other)
            torch.testing.assert_close(y.double(), want, rtol=1e-5, atol=1e-5)
            d_y = torch.randn_like(want)
            got = torch.autograd.grad(y, (one, *linear.parameters()), d_y.float())
            right = torch.autograd.grad(want, (other, *exact.parameters()), d_y)
            for mine, theirs in zip(got, right, strict=True):
                torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)


def test_gradients_of_weights_are_torchs_own_product(products: list[object]) -> None:
    linear, x = drawn()
    linear(x).sum().backward()
    usual = linear.weight.grad
    linear.weight.grad = None
    project(linear, x).sum().backward()
    assert usual is not None
    assert torch.equal(linear.weight.grad, usual)  # type: ignore[arg-type]
    assert products == [((2, 3, 7), (5, 7))]


@pytest.mark.parametrize(("frozen", "kept"), [("weight", (5, 7)), ("x", (2, 3, 7))])
def test_what_no_gradient_needs_is_not_kept(frozen: str, kept: tuple[int, ...]) -> None:
    """As torch's linear: a frozen weight keeps no input, and an input without a gradient no weight."""
    linear, x = drawn()
    linear.weight.requires_grad_(frozen != "weight")
    x.requires_grad_(frozen != "x")
    saved: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one) or one, lambda one: one):
        y = project(linear, x)
    assert [tuple(one.shape) for one in saved] == [kept]
    y.sum().backward()
    usual = copy.deepcopy(linear)
    usual.zero_grad()
    other = x.detach().clone().requires_grad_(x.requires_grad)
    usual(other).sum().backward()
    for mine, right in ((x, other), *zip(linear.parameters(), usual.parameters(), strict=True)):
        assert (mine.grad is None) == (right.grad is None)
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, right.grad)


def test_a_gradient_can_be_differentiated_again() -> None:
    linear, x = drawn()
    found = []
    for product in (project, lambda linear, x: linear(x)):
        y = product(linear, x).square().sum()
        (first,) = torch.autograd.grad(y, linear.weight, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), linear.weight)[0])
    torch.testing.assert_close(*found)


def test_whoever_watches_sees_the_module_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, adapters, parametrizations, other classes, other modes: all as without it."""
    linear, x = drawn()
    calls: list[object] = []
    handles = [
        linear.register_forward_hook(lambda *given: calls.append(given)),
        linear.register_forward_pre_hook(lambda *given: calls.append(given)),
        linear.register_full_backward_hook(lambda *given: calls.append(given)),
        nn.modules.module.register_module_forward_hook(lambda *given: calls.append(given)),
    ]
    for handle in reversed(handles):
        assert not by_onednn(linear, x)
        handle.remove()
    assert by_onednn(linear, x)

    class Adapted(nn.Linear):
        pass

    assert not by_onednn(Adapted(7, 5), x)
    assert not by_onednn(parametrizations.weight_norm(nn.Linear(7, 5)), x)
    with monkeypatch.context() as profiled:
        profiled.setattr(nn.functional, "linear", lambda *given: None)
        assert not by_onednn(linear, x)
        assert not weight_by_onednn(linear.weight, x)
    wrapped = nn.Linear(7, 5)
    wrapped.forward = lambda x: x  # type: ignore[method-assign]
    assert not by_onednn(wrapped, x)
    assert not by_onednn(linear.double(), x.double())
    linear.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert not by_onednn(linear, x)
    with FlopCounterMode(display=False) as counter:
        project(linear, x)
    assert counter.get_total_flops() == 2 * 6 * 7 * 5
    assert torch.func.vmap(lambda row: project(linear, row))(x).shape == (2, 3, 5)
    assert not by_onednn(linear, x.to("meta"))
    with pytest.raises(RuntimeError, match="shape"):
        project(linear, x[..., :4])


def test_few_rows_and_other_processors_go_torchs_way(monkeypatch: pytest.MonkeyPatch) -> None:
    linear, x = drawn()
    assert not by_onednn(linear, x[0, :1])
    monkeypatch.setattr(projections, "faster_from", lambda: None)
    assert not by_onednn(linear, x)
    assert "torch's own way" in said()


@pytest.mark.parametrize("grad", [True, False])
def test_a_layer_gives_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch, grad: bool) -> None:
    torch.manual_seed(0)
    layer, x = hw.MultiHeadAttention(12, 3), torch.randn(2, 5, 12, requires_grad=grad)
    y = layer(x, mask=hw.Causal())
    monkeypatch.setattr(projections, "faster_from", lambda: None)
    torch.testing.assert_close(y, layer(x, mask=hw.Causal()))
    if grad:
        torch.testing.assert_close(
            torch.autograd.grad(y.sum(), x), torch.autograd.grad(layer(x, mask=hw.Causal()).sum(), x)
        )


@pytest.mark.parametrize("asked", [True, False])
def test_a_layer_compiles_to_one_graph(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    if not asked:
        monkeypatch.undo()  # as it is on this processor
    torch.manual_seed(0)
    layer, x = hw.MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))


def test_what_is_not_a_plain_linear_is_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and biases of other kinds, other types of bias, and oneDNN switched off: the module is called,
    and gives its own numbers or its own error."""
    linear, x = drawn()

    def other(**changed: torch.Tensor) -> nn.Linear:
        made = copy.deepcopy(linear)
        for name, value in changed.items():
            setattr(made, name, nn.Parameter(value, requires_grad=value.layout is torch.strided))
        return made

    weight, bias = linear.weight.detach(), linear.bias.detach()
    ways = {
        "sparse weight": other(weight=weight.to_sparse_csr()),
        "subclass of a weight": other(weight=TwoTensor(weight, weight.clone())),
        "subclass of a bias": other(bias=TwoTensor(bias, bias.clone())),
        "one bias for all": other(bias=bias[:1]),
    }
    for name, module in ways.items():
        assert not by_onednn(module, x), name
        got, want = project(module, x), module(x)
        got, want = (y.a if isinstance(y, TwoTensor) else y for y in (got, want))
        assert torch.equal(got, want), name
    assert not by_onednn(other(weight=torch.ones(7), bias=torch.ones(())), x)
    for module in (other(bias=bias.double()), other(bias=bias[:3]), other(bias=bias.to("meta"))):
        with pytest.raises(RuntimeError) as mine:
            project(module, x)
        with pytest.raises(RuntimeError) as theirs:
            module(x)
        assert str(mine.value) == str(theirs.value)
    assert not by_onednn(linear, x.to_sparse())
    assert not by_onednn(linear, TwoTensor(x, x.clone()))
    nested = torch.nested.nested_tensor([x[0], x[1, :2]])
    assert project(linear, nested).is_nested
    swapped = {"weight": torch.zeros(5, 7), "bias": bias}
    called = torch.func.functional_call(Projecting(linear), {f"linear.{n}": t for n, t in swapped.items()}, x)
    assert torch.equal(called, bias.expand(2, 3, 5))
    with torch.backends.mkldnn.flags(enabled=False):
        assert not by_onednn(linear, x)
        assert torch.equal(project(linear, x), linear(x))
    for turned in (torch._neg_view(-x), torch.complex(x, -x).conj().imag):
        torch.testing.assert_close(project(linear, turned), linear(x))
    turned_weight = other(weight=weight)
    turned_weight.weight.data = torch._neg_view(-weight)
    torch.testing.assert_close(project(turned_weight, x), linear(x))


class Projecting(nn.Module):
    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return project(self.linear, x)


def test_gradients_that_stand_for_more_than_themselves() -> None:
    """A batch of them, in both ways, and one with its tangent; forward mode; a mode that wants to see all."""
    linear, x = drawn()
    x.requires_grad_()
    sources = [x, linear.weight, linear.bias]
    found = []
    for product in (project, lambda linear, x: linear(x)):
        y = product(linear, x)
        several = torch.randn(3, *y.shape, generator=torch.Generator().manual_seed(4))

        def grads(d_y: torch.Tensor, y: torch.Tensor = y, **how: bool) -> tuple[torch.Tensor, ...]:
            return torch.autograd.grad(y, sources, d_y, retain_graph=True, **how)

        batched = grads(several, is_grads_batched=True)
        mapped = torch.func.vmap(grads)(several)
        with forward_ad.dual_level():
            duals = grads(forward_ad.make_dual(several[0], several[1]))
            tangents = tuple(forward_ad.unpack_dual(dual).tangent for dual in duals)
            given = forward_ad.make_dual(x.detach(), several.new_ones(x.shape))
            forward = forward_ad.unpack_dual(product(linear, given)).tangent
        with FlopCounterMode(display=False) as counter:
            grads(several[0])
        found.append((*batched, *mapped, *tangents, forward, counter.get_total_flops()))
    for mine, right in zip(*found, strict=True):
        torch.testing.assert_close(mine, right)
