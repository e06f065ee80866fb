"""Dropout of the models: torch's law, drawn faster."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from headwise.models.dropping import dropped


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.03, 0.9, 2**-10])
@pytest.mark.parametrize("shape", [(3, 1001, 101), (999_983,)])
def test_the_law(rate: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(11)
    x = torch.full(shape, 3.0)
    out = dropped(nn.Dropout(rate), x)
    kept = out != 0
    count, rounded = x.numel(), round(rate * 2**16) / 2**16
    five = 5 * math.sqrt(rounded * (1 - rounded) / count)  # standard deviations
    assert abs(float((~kept).double().mean()) - rounded) < five
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 3 / (1 - rounded)))
    assert out.shape == x.shape


def test_entries_are_independent() -> None:
    """Of neighbours, of entries that share a draw, and of calls: as many agree as chance has it."""
    torch.manual_seed(12)
    module, x = nn.Dropout(0.3), torch.ones(1 << 20)
    first, second = dropped(module, x) > 0, dropped(module, x) > 0
    same = 0.3**2 + 0.7**2
    tolerance = 5 * math.sqrt(same * (1 - same) / len(x))
    for distance in (1, 2, 3, 4, 5, 64):
        assert abs(float((first[distance:] == first[:-distance]).double().mean()) - same) < tolerance
    assert abs(float((first == second).double().mean()) - same) < tolerance
    by_lane = first.view(-1, 4).double().mean(0)
    assert (by_lane - 0.7).abs().max() < 5 * math.sqrt(0.21 / (len(x) / 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_gradient_is_that_of_what_was_kept(dtype: torch.dtype) -> None:
    torch.manual_seed(13)
    x = torch.rand(7, 13, dtype=dtype) + 1
    x.requires_grad_()
    out = dropped(nn.Dropout(0.4), x)
    grad = torch.randn_like(out)
    out.backward(grad)
    assert out.dtype == dtype
    assert x.grad is not None
    factor = torch.full_like(out, 2**16 / (2**16 - round(0.4 * 2**16)))
    torch.testing.assert_close(x.grad, torch.where(out != 0, grad * factor, 0))


def test_second_derivatives() -> None:
    x = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(14)
        return dropped(nn.Dropout(0.4), x * x)

    torch.autograd.gradgradcheck(run, (x,))


def test_draws_come_from_the_default_generator() -> None:
    module, x = nn.Dropout(0.5), torch.ones(31)
    torch.manual_seed(15)
    first, second = dropped(module, x), dropped(module, x)
    torch.manual_seed(15)
    assert torch.equal(dropped(module, x), first)
    assert torch.equal(dropped(module, x), second)
    assert not torch.equal(first, second)


def test_checkpointing_drops_the_same_again() -> None:
    module, x = nn.Dropout(0.5), torch.ones(31, requires_grad=True)
    out = checkpoint(lambda x: dropped(module, x), x, use_reentrant=False)
    (out * out.detach()).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, out.detach() * 2)


def test_nothing_is_dropped_in_eval_mode_or_at_rate_0() -> None:
    x = torch.randn(5)
    assert dropped(nn.Dropout(0.5).eval(), x) is x
    assert dropped(nn.Dropout(0.0), x) is x
    assert dropped(nn.Identity(), x) is x
    assert dropped(nn.Dropout(0.5), x[:0]).shape == (0,)


def test_other_modules_and_hooks_are_called() -> None:
    class Halves(nn.Dropout):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / 2

    seen: list[torch.Tensor] = []
    x = torch.ones(3)
    assert dropped(Halves(0.5), x).tolist() == [0.5, 0.5, 0.5]
    module = nn.Dropout(0.5)
    watched = copy.deepcopy(module)
    watched.register_forward_hook(lambda module, given, out: seen.append(out))
    assert dropped(watched, x) is seen[0]


def test_transforms_take_torchs_own() -> None:
    module, x = nn.Dropout(0.5), torch.ones(3, 31)
    out = torch.func.vmap(lambda x: dropped(module, x), randomness="different")(x)
    assert set(out.flatten().tolist()) == {0.0, 2.0}


def test_rates_that_sixteen_bits_cannot_hold_are_torchs() -> None:
    torch.manual_seed(16)
    x = torch.ones(1 << 23)
    for rate in (1e-5, 1e-4):
        share = float((dropped(nn.Dropout(rate), x) == 0).double().mean())
        assert abs(share - rate) < 5 * math.sqrt(rate / len(x))
    kept = dropped(nn.Dropout(1 - 1e-5), x)
    torch.testing.assert_close(kept.unique(), torch.tensor([0.0, 1e5]), rtol=0.01, atol=0)


def test_several_gradients_at_once() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    out = dropped(nn.Dropout(0.5), x)
    (grads,) = torch.autograd.grad(out, x, torch.ones(2, 5, 3), is_grads_batched=True)
    assert torch.equal(grads, (out != 0).expand(2, 5, 3) * 2.0)


def test_a_hook_on_gradients_is_called() -> None:
    module, called = nn.Dropout(0.5), []
    module.register_full_backward_hook(lambda module, given, got: called.append(module))
    dropped(module, torch.ones(31, requires_grad=True) * 1).sum().backward()
    assert called == [module]


def test_the_default_device_is_of_no_account() -> None:
    with torch.device("meta"):
        assert dropped(nn.Dropout(0.5), torch.ones(31, device="cpu")).device.type == "cpu"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_can_be_traced() -> None:
    module, x = nn.Dropout(0.5), torch.ones(31)
    traced = torch.jit.trace(lambda x: dropped(module, x), x, check_trace=False)
    graph = make_fx(lambda x: dropped(module, x))(x)
    for made in (traced, graph):
        assert set(made(x).tolist()) == {0.0, 2.0}
