"""Which kernel runs: chosen by sizes, types and options alone, and said aloud."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import headwise
from headwise.attention import attention, explain
from headwise.kernels import KERNELS
from headwise.kernels.native_build import native
from headwise.kernels.native_table import multiplications, slower_than_torch
from headwise.masks import Allow, Causal, KeyLengths
from headwise.observers import Entropy, MaxWeight, Weights
from headwise.positions import ALiBi

WIDEST = "tiled" if native is None else "native"  # takes what torch's operation refuses


def taken_small() -> str:
    """Which kernel a small call without options gets on this machine, by the measured table."""
    if native is None:
        return "torch"
    q, _, v = drawn()
    slower = slower_than_torch(native.isa(), q.dtype, 7, 2, multiplications(q.shape, v.shape))
    return "torch" if slower else "native"


def drawn(dtype: torch.dtype = torch.float32, d_v: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, n, d) for heads, n, d in ((4, 7, 5), (2, 11, 5), (2, 11, d_v)))
    return q.to(dtype), k.to(dtype), v.to(dtype)


@pytest.mark.parametrize(
    ("options", "kernel", "says"),
    [
        ({}, None, "comes later in line"),
        ({"mask": Causal()}, None, "comes later in line"),
        ({"bias": ALiBi.for_heads(4)}, "torch", "comes later in line"),
        ({"dropout": 0.25}, WIDEST, "dropout=0.25"),
        ({"softcap": 3.0}, WIDEST, "softcap=3.0"),
        ({"sinks": torch.zeros(4)}, WIDEST, "sinks"),
        ({"kernel": "reference"}, "reference", "'reference' was asked for"),
    ],
)
def test_auto_takes_the_first_that_does_not_refuse(
    options: dict[str, Any], kernel: str | None, says: str
) -> None:
    """transformers#46960, unsloth#8225, Comfy#15135: grouped heads with a mask, and other options, fell to
    a path of 45 to 71 GB in silence. Here the choice and each refusal are printed, and none is quadratic."""
    q, k, v = drawn()
    kernel = taken_small() if kernel is None else kernel
    choice = explain(q, k, v, **options)
    assert choice.kernel.name == kernel
    text = str(choice)
    assert repr(choice) == text  # what a notebook shows
    assert f"kernel     {kernel}" in text
    assert says in text
    for other, reasons in choice.refusals.items():
        if other != kernel:
            assert f"not {other}" in text
            assert all(reason in text for reason in reasons)
    if "kernel" not in options:
        assert choice.kernel.linear_memory
        assert "memory linear in length" in text
        attention(q, k, v, **options, strict=True)


def test_values_of_other_widths_are_refused_by_the_fused_operation_with_both_numbers() -> None:
    choice = explain(*drawn(d_v=3))
    assert choice.kernel.name == WIDEST
    assert any("3 and 5" in reason for reason in choice.refusals["torch"])


def test_what_explain_says_of_a_call() -> None:
    q, k, v = drawn()
    text = str(explain(q, k, v, mask=Causal() & KeyLengths(torch.tensor([3, 11]))))
    for part in ("[2, 4, 7, 5]", "[2, 2, 11, 5]", "float32", "cpu", "causal & key lengths [3, 11]"):
        assert part in text
    assert "mask       none" in str(explain(q, k, v))


def test_explain_computes_nothing_and_leaves_the_generator_alone() -> None:
    q, k, v = drawn()
    before = torch.get_rng_state()
    explain(q, k, v, dropout=0.5)
    assert torch.equal(torch.get_rng_state(), before)
    meta = [t.to("meta") for t in (q, k, v)]
    assert explain(*meta).kernel.name == "reference"  # sizes are enough
    assert attention(*meta).shape == (2, 4, 7, 5)


def test_fake_tensors_are_asked_for_their_sizes_alone() -> None:
    with FakeTensorMode():
        q, k, v = drawn()
        assert attention(q, k, v, mask=Causal()).shape == (2, 4, 7, 5)
        assert attention(q, k, v, mask=Causal() & KeyLengths(3), dropout=0.5).shape == (2, 4, 7, 5)


def test_strict_refuses_memory_that_grows_with_the_product() -> None:
    q, k, v = drawn()
    with pytest.raises(ValueError, match=r"strict=True.*'reference'.*7 x 11.*4 heads.*strict=False"):
        attention(q, k, v, kernel="reference", strict=True)
    with pytest.raises(ValueError, match="strict=True"):
        explain(q, k, v, kernel="reference", strict=True)
    assert torch.equal(attention(q, k, v, strict=True), attention(q, k, v))


def test_an_unknown_kernel_is_answered_with_the_known_ones() -> None:
    q, k, v = drawn()
    with pytest.raises(ValueError, match="kernel='flash' is unknown: choose one of auto, ") as error:
        attention(q, k, v, kernel="flash")
    assert all(kernel.name in str(error.value) for kernel in KERNELS)


@pytest.mark.parametrize(
    ("kernel", "options", "says"),
    [
        ("torch", {"dropout": 0.5}, "dropout=0.5"),
        ("torch", {"softcap": 2.0}, "softcap=2.0"),
        ("torch", {"sinks": torch.zeros(4)}, "sinks"),
        ("flex", {}, "on 'cpu'"),
    ],
)
def test_a_kernel_that_was_asked_for_says_why_it_refuses(
    kernel: str, options: dict[str, Any], says: str
) -> None:
    q, k, v = drawn()
    with pytest.raises(ValueError, match=f"kernel='{kernel}' refuses this call") as error:
        attention(q, k, v, kernel=kernel, **options)
    assert says in str(error.value)
    assert "kernel='auto'" in str(error.value)


# Asking never changes the answer


CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"mask": Causal()},
    "padded": {"mask": Causal() & KeyLengths(torch.tensor([3, 11]))},
    "pairs": {"mask": Allow(torch.arange(77).view(7, 11) % 3 > 0)},
    "biased": {"bias": torch.arange(77.0).view(7, 11) / 50},
    "softcap, sinks": {"softcap": 3.0, "sinks": torch.ones(4)},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", list(CALLS))
def test_asking_never_changes_the_answer(name: str, dtype: torch.dtype) -> None:
    """With or without observations, gradients, inference mode and autocast's absence: the same bits."""
    q, k, v = drawn(dtype)
    want = attention(q, k, v, **CALLS[name])
    seen, observed = attention(q, k, v, observe=[Entropy(), MaxWeight(), Weights()], **CALLS[name])
    assert torch.equal(seen, want)
    assert observed.weights.shape == (2, 4, 7, 11)
    assert torch.equal(attention(q, k, v, observe=[], **CALLS[name])[0], want)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    assert torch.equal(attention(*leaves, **CALLS[name]), want)
    assert torch.equal(attention(*leaves, observe=[Entropy()], **CALLS[name])[0], want)
    with torch.no_grad():
        assert torch.equal(attention(*leaves, **CALLS[name]), want)
    with torch.inference_mode():
        assert torch.equal(attention(q, k, v, **CALLS[name]), want)
    choices = {explain(q, k, v, **CALLS[name]).kernel.name, explain(*leaves, **CALLS[name]).kernel.name}
    with torch.no_grad():
        choices.add(explain(*leaves, **CALLS[name]).kernel.name)
    assert len(choices) == 1


def test_observing_spends_no_random_numbers() -> None:
    q, k, v = drawn()
    outs = []
    for observe in (None, [Entropy()]):
        result = attention(q, k, v, dropout=0.5, generator=torch.Generator().manual_seed(1), observe=observe)
        outs.append(result[0] if isinstance(result, tuple) else result)
    assert torch.equal(*outs)


def test_the_names_are_at_the_top() -> None:
    for name in ("attention", "explain", "merge", "Problem"):
        assert hasattr(headwise, name)
        assert name in headwise.__all__
