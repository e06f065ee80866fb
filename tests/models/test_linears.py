"""Linears of models by oneDNN: the network at every position, and the projection before the softmax."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from headwise.models import FeedForward, Transformer, TransformerConfig
from headwise.models.embeddings import TokenEmbedding
from headwise.multihead import projections

ROWS, WIDTH, INNER, VOCAB = (2, 3), 5, 7, 11
Shapes = list[tuple[tuple[int, ...], tuple[int, ...]]]


class Scores(nn.Module):
    """The projection before the softmax as a module's call."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(VOCAB, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.tokens.logits(x)


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: FeedForward(WIDTH, INNER),
    "gelu": lambda: FeedForward(WIDTH, INNER, activation="gelu"),
    "scores": Scores,
}
# (what is multiplied, by what) in the forward pass, then in the backward pass
FORWARD = {
    "relu": [((*ROWS, WIDTH), (INNER, WIDTH)), ((*ROWS, INNER), (WIDTH, INNER))],
    "scores": [((*ROWS, WIDTH), (VOCAB, WIDTH))],
}
BACKWARD = {
    "relu": [((*ROWS, WIDTH), (INNER, WIDTH)), ((*ROWS, INNER), (WIDTH, INNER))],
    "scores": [((*ROWS, VOCAB), (WIDTH, VOCAB))],
}
FORWARD["gelu"], BACKWARD["gelu"] = FORWARD["relu"], BACKWARD["relu"]


def made(name: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    return MAKERS[name](), torch.randn(*ROWS, WIDTH)


def without(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> Any:
    """The same by torch alone."""
    with monkeypatch.context() as patched:
        patched.setattr(projections, "faster_from", lambda: None)
        return call()


@pytest.mark.parametrize("name", MAKERS)
def test_outputs_and_gradients_are_those_of_float64(products: Shapes, name: str) -> None:
    module, x = made(name)
    exact, wide = copy.deepcopy(module).double(), x.double().requires_grad_()
    x.requires_grad_()
    y, want = module(x), exact(wide)
    assert products == FORWARD[name]
    torch.testing.assert_close(y.double(), want, rtol=1e-5, atol=1e-5)
    d_y = torch.randn_like(y)
    got = torch.autograd.grad(y, (x, *module.parameters()), d_y)
    right = torch.autograd.grad(want, (wide, *exact.parameters()), d_y.double())
    assert products == FORWARD[name] + BACKWARD[name]
    for mine, theirs in zip(got, right, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MAKERS)
def test_grad_mode_and_training_change_no_bit(products: Shapes, name: str) -> None:
    module, x = made(name)
    found = [module.train()(x), module.eval()(x)]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found.append(module(x))
    assert products == 4 * FORWARD[name]
    assert all(torch.equal(found[0], one) for one in found)


@pytest.mark.parametrize("name", MAKERS)
def test_one_row_and_small_products_are_torchs(
    products: Shapes, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, x = made(name)
    module(x[:1, :1])
    assert products == []
    most = max(weight[0] * weight[1] for _, weight in FORWARD[name]) * ROWS[0] * ROWS[1]
    monkeypatch.setattr(projections, "faster_from", lambda: most + 1)
    module(x)
    assert products == []
    monkeypatch.setattr(projections, "faster_from", lambda: most)
    module(x)
    assert products == FORWARD[name]


def test_hooks_on_parts_of_the_network_are_called(products: Shapes) -> None:
    network, x = made("relu")
    assert isinstance(network, FeedForward)
    seen: list[Tensor] = []
    handle = network.inner.register_forward_hook(lambda part, given, out: seen.append(out))
    network(x)
    assert [tuple(one.shape) for one in seen] == [(*ROWS, INNER)]
    assert products == FORWARD["relu"][1:]  # the other one as before
    handle.remove()
    network.outer.register_full_backward_hook(lambda part, to, of: seen.append(of[0]))
    network(x).sum().backward()
    assert torch.equal(seen[1], torch.ones(*ROWS, WIDTH))


def test_a_part_that_was_replaced_is_called(products: Shapes) -> None:
    network, x = made("relu")
    network.inner = nn.Sequential(nn.Linear(WIDTH, 2), nn.Linear(2, INNER))
    want = network.outer(network.inner(x).relu())
    torch.testing.assert_close(network(x), want)
    assert products == FORWARD["relu"][1:]


@pytest.mark.parametrize("name", MAKERS)
def test_autocast_decides_the_type(products: Shapes, name: str) -> None:
    module, x = made(name)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
    assert products == []


@pytest.mark.parametrize("name", MAKERS)
def test_other_types_and_devices_are_torchs(products: Shapes, name: str) -> None:
    module, x = made(name)
    assert module.double()(x.double()).dtype == torch.float64
    assert module.bfloat16()(x.bfloat16()).dtype == torch.bfloat16
    assert module.to("meta")(x.to("meta")).device.type == "meta"
    assert products == []


@pytest.mark.parametrize("name", MAKERS)
def test_they_compile_and_export_to_one_graph(
    products: Shapes, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, x = made(name)
    want = without(monkeypatch, lambda: module(x))
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), want)
    free = {0: torch.export.Dim("batch", min=2, max=64)}
    exported = torch.export.export(module, (x,), dynamic_shapes=(free,))
    torch.testing.assert_close(exported.module()(x), want)
    assert products == []


@pytest.mark.parametrize("name", MAKERS)
def test_transforms_and_second_derivatives(
    products: Shapes, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, x = made(name)
    weights = tuple(module.parameters())

    def second(expected: Shapes) -> tuple[Tensor, ...]:
        given = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(module(given).square().sum(), given, create_graph=True)
        assert products == expected  # nothing in a backward pass that is differentiated
        return torch.autograd.grad(first.square().sum(), (given, *weights), materialize_grads=True)

    usual = without(monkeypatch, lambda: second([]))
    torch.testing.assert_close(second(FORWARD[name]), usual)
    products.clear()
    rows = torch.func.vmap(module)(x)
    tangent = torch.func.jvp(module, (x,), (x,))[1]
    assert products == []
    torch.testing.assert_close(rows, without(monkeypatch, lambda: module(x)))
    torch.testing.assert_close(tangent, without(monkeypatch, lambda: torch.func.jvp(module, (x,), (x,))[1]))


@pytest.mark.parametrize("name", MAKERS)
def test_who_counts_or_replaces_operations_sees_them(
    products: Shapes, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, x = made(name)
    multiplications = sum(ROWS[0] * ROWS[1] * weight[0] * weight[1] for _, weight in FORWARD[name])
    with FlopCounterMode(display=False) as counter:
        module(x)
    assert counter.get_total_flops() == 2 * multiplications
    functions: list[Any] = []

    class Seeing(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            functions.append(function)
            return function(*args, **(kwargs or {}))

    with Seeing():
        module(x)
    assert functions.count(nn.functional.linear) == len(FORWARD[name])
    usual, called = nn.functional.linear, []

    def profiled(*given: Any) -> Tensor:
        called.append(given)
        return usual(*given)

    monkeypatch.setattr(nn.functional, "linear", profiled)
    module(x)
    assert len(called) == len(FORWARD[name])
    assert products == []


@pytest.mark.parametrize("name", MAKERS)
def test_frozen_weights_get_no_gradient(products: Shapes, name: str) -> None:
    module, x = made(name)
    exact, wide = copy.deepcopy(module).double(), x.double().requires_grad_()
    module.requires_grad_(False)
    x.requires_grad_()
    module(x).sum().backward()
    exact(wide).sum().backward()
    assert x.grad is not None
    assert wide.grad is not None
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-5, atol=1e-5)
    assert all(one.grad is None for one in module.parameters())
    assert products == FORWARD[name] + BACKWARD[name]


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def test_weights_that_are_no_parameters_are_torchs(products: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, x = made("scores")
    assert isinstance(scores, Scores)
    zero = torch.func.functional_call(scores, {"tokens.weight": torch.zeros(VOCAB, WIDTH)}, x)
    assert torch.equal(zero, torch.zeros(*ROWS, VOCAB))
    want = 2 * without(monkeypatch, lambda: scores(x))
    parametrize.register_parametrization(scores.tokens, "weight", Doubled())
    torch.testing.assert_close(scores(x), want)
    assert products == []


def test_a_whole_model_learns_the_same(products: Shapes) -> None:
    """Embeddings shared on three sides, and all of a Transformer's linears of this kind."""
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=VOCAB, num_layers=1, d_model=6, d_ff=7, num_heads=2, dropout=0.0, max_length=13
    )
    model = Transformer(config)
    exact = copy.deepcopy(model).double()
    source, target = torch.randint(3, VOCAB, (2, 5)), torch.randint(3, VOCAB, (2, 3))
    scores, want = model(source, target), exact(source, target)
    projected = 4 + 2 + 4 + 4 + 2 + 1  # attention and network of the encoder; both and network; scores
    assert len(products) == projected
    torch.testing.assert_close(scores.double(), want, rtol=1e-4, atol=1e-5)
    scores.square().sum().backward()
    want.square().sum().backward()
    assert len(products) == 2 * projected
    for (name, mine), right in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert mine.grad is not None, name
        assert right.grad is not None, name
        torch.testing.assert_close(mine.grad.double(), right.grad, rtol=1e-3, atol=1e-4, msg=name)
