"""A layer's linears by oneDNN: the same numbers, and out of the way wherever somebody looks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.flop_counter import FlopCounterMode

import headwise as hw
from headwise.multihead import projections
from headwise.multihead.projections import by_onednn, project, said

pytestmark = pytest.mark.skipif(
    projections._OPERATION is None or not torch.backends.mkldnn.is_available(),
    reason="torch has no oneDNN here",
)


@pytest.fixture(autouse=True)
def measured_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if oneDNN were faster here, at any size."""
    monkeypatch.setattr(projections, "faster_from", lambda: 1)
    monkeypatch.setattr(projections, "_LEAST_ROWS", 2)


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


def test_a_gradient_can_be_differentiated_again() -> None:
    linear, x = drawn()
    found = []
    for product in (project, lambda linear, x: linear(x)):
        y = product(linear, x).square().sum()
        (first,) = torch.autograd.grad(y, linear.weight, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), linear.weight)[0])
    torch.testing.assert_close(*found)


def test_whoever_watches_sees_the_module_called() -> None:
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
