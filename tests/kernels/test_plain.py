"""Calls without options take a shorter way: it must not be noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import headwise as hw
from headwise.kernels import plain
from headwise.kernels.native_build import native
from headwise.kernels.sdpa import TorchFused

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def inputs(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for _ in range(3)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call since was answered by the short way."""
    found: list[bool] = []

    def watched(*args: object, **kwargs: object) -> Tensor | None:
        out = plain.solve_plain(*args, **kwargs)  # type: ignore[arg-type]
        found.append(out is not None)
        return out

    monkeypatch.setattr(sys.modules["headwise.attention"], "solve_plain", watched)
    return found


@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 5),
    q_len=st.integers(1, 23),
    k_len=st.integers(1, 23),
    width=st.sampled_from((1, 7, 16, 32)),
    dtype=st.sampled_from(DTYPES),
    causal=st.booleans(),
    align=st.sampled_from(("end", "start")),
)
@settings(max_examples=150, deadline=None)
def test_it_is_the_same_number_to_the_bit(
    batch: int, heads: int, q_len: int, k_len: int, width: int, dtype: torch.dtype, causal: bool, align: str
) -> None:
    q, _, _ = inputs(batch, heads, q_len, width, dtype=dtype)
    _, k, v = inputs(batch, heads, k_len, width, dtype=dtype, seed=5)
    options = {"mask": hw.Causal() if causal else None, "align": align}
    short = hw.attention(q, k, v, **options)  # type: ignore[arg-type, call-overload]
    kernel = hw.explain(q, k, v, **options).kernel.name  # type: ignore[arg-type]
    long = hw.attention(q, k, v, kernel=kernel, **options)  # type: ignore[arg-type, call-overload]
    assert short.dtype == long.dtype
    assert torch.equal(short, long)


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_taken_where_it_is_meant_for(causal: bool, taken: list[bool]) -> None:
    hw.attention(*inputs(2, 3, 5, 7), mask=hw.Causal() if causal else None)
    assert taken == [True]


Change = Callable[[list[Tensor]], tuple[list[Tensor], dict[str, object]]]
OTHERS: dict[str, Change] = {
    "gradient": lambda x: ([x[0].requires_grad_(), *x[1:]], {}),
    "grouped heads": lambda x: ([x[0], x[1][:, :1], x[2][:, :1]], {}),
    "no batch": lambda x: ([one[0] for one in x], {}),
    "two batch dimensions": lambda x: ([one[None] for one in x], {}),
    "strided": lambda x: ([one.mT.contiguous().mT for one in x], {}),
    "causal, unequal lengths": lambda x: ([x[0][:, :, :2], *x[1:]], {"mask": hw.Causal()}),
    "another mask": lambda x: (x, {"mask": hw.KeyLengths(torch.tensor([3, 5]))}),
    "empty": lambda x: ([x[0][:, :, :0], *x[1:]], {}),
    "a NaN": lambda x: ([x[0].index_fill(2, torch.tensor([1]), float("nan")), *x[1:]], {}),
    "an infinite key": lambda x: ([x[0], x[1].index_fill(2, torch.tensor([1]), float("inf")), x[2]], {}),
}
if native is None:
    OTHERS["values wider"] = lambda x: ([*x[:2], x[2].repeat(1, 1, 1, 2)], {})


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_takes_the_long_way_and_is_right(name: str, taken: list[bool]) -> None:
    # In float64, which is torch's: the compiled kernel has a short way for some of these, where it is faster.
    (q, k, v), options = OTHERS[name](inputs(2, 3, 5, 7, dtype=torch.float64))
    out = hw.attention(q, k, v, **options)  # type: ignore[call-overload]
    assert not any(taken)
    expected = hw.attention(q, k, v, kernel="reference", **options)  # type: ignore[call-overload]
    torch.testing.assert_close(out, expected, equal_nan=True)


@pytest.mark.parametrize(
    "bad", [{"dropout": None}, {"align": "middle"}, {"mask": torch.ones(5, 5)}, {"dropout": True}]
)
def test_bad_options_are_refused_as_ever(bad: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        hw.attention(*inputs(2, 3, 5, 7), **bad)  # type: ignore[call-overload]


def test_sizes_that_differ_are_refused_as_ever() -> None:
    q, k, v = inputs(2, 3, 5, 7)
    with pytest.raises(ValueError, match="k_len differs"):
        hw.attention(q, k, v[:, :, :4])


def test_sizes_that_passed_once_do_not_let_others_pass() -> None:
    q, k, v = inputs(2, 3, 5, 7)
    hw.attention(q, k, v)
    with pytest.raises(TypeError, match="must be the same"):
        hw.attention(q, k.double(), v)


def test_autocast_rounds_nothing() -> None:
    q, k, v = inputs(2, 3, 5, 7)
    plainly = hw.attention(q, k, v)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(hw.attention(q, k, v), plainly)


def test_transforms_go_the_long_way(taken: list[bool]) -> None:
    q, k, v = inputs(2, 3, 5, 7)
    out = torch.vmap(hw.attention)(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0))
    _, tangent = torch.func.jvp(lambda one: hw.attention(one, k, v), (q,), (torch.ones_like(q),))
    assert not any(taken)
    torch.testing.assert_close(out[0], hw.attention(q, k, v))
    nudged = [hw.attention((q.double() + step), k.double(), v.double()) for step in (1e-6, -1e-6)]
    torch.testing.assert_close(tangent.double(), (nudged[0] - nudged[1]) / 2e-6, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(15, 15), (7, 100), (256, 256), (257, 31)])
def test_16_bit_gradients_lose_no_more_than_their_rounding(
    dtype: torch.dtype, sizes: tuple[int, int]
) -> None:
    """Short ones are computed in float32: none may be off by more than a few roundings of its own dtype."""
    q, *_ = inputs(2, 3, sizes[0], 16, dtype=dtype)
    _, k, v = inputs(2, 3, sizes[1], 16, dtype=dtype, seed=5)
    d_out = inputs(2, 3, sizes[0], 16, dtype=dtype, seed=7)[0]
    leaves = [one.requires_grad_() for one in (q, k, v)]
    out = hw.attention(*leaves, kernel=TorchFused.name)
    grads = torch.autograd.grad(out, leaves, d_out)
    exact_leaves = [one.detach().double().requires_grad_() for one in leaves]
    exact = torch.autograd.grad(hw.attention(*exact_leaves, kernel="reference"), exact_leaves, d_out.double())
    for grad, right in zip(grads, exact, strict=True):
        assert grad.dtype == dtype
        off = (grad.double() - right).abs().max() / right.abs().max()
        assert off < 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("mask", [None, hw.Causal(), hw.KeyLengths(torch.tensor([3, 5])), hw.Window(1, 1)])
def test_tensors_stay_where_the_inputs_are(mask: hw.Mask | None) -> None:
    """Whatever device new tensors are made on: the inputs say it."""
    leaves = [one.requires_grad_() for one in inputs(2, 3, 5, 7)]
    expected = hw.attention(*leaves, mask=mask)
    with torch.device("meta"):
        out = hw.attention(*leaves, mask=mask)
        grads = torch.autograd.grad(out.sum(), leaves)
    assert torch.equal(out, expected)
    assert all(grad.device.type == "cpu" and grad.isfinite().all() for grad in grads)
