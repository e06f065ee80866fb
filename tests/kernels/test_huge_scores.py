"""Scores so large that floating point shows: gradients, rows of nothing but NaN or -inf, biases of -inf."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from headwise.attention import problem, solve
from headwise.kernels.packing import pack, unpack
from headwise.masks import KeyLengths, Mask

KERNELS = ("torch", "tiled", "reference")
LOWEST = torch.finfo(torch.float32).min


def _gradients(kernel: str, *tensors: Tensor, **options: object) -> tuple[Tensor, ...]:
    leaves = [t.clone().requires_grad_() for t in tensors]
    out, _ = solve(problem(*leaves, **options), kernel=kernel)
    weight = torch.arange(out.numel(), dtype=out.dtype).view_as(out).cos()
    return torch.autograd.grad((out * weight).sum(), leaves)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_nothing_but_finfo_min_send_back_an_even_gradient(kernel: str) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 5) for n in (7, 11, 11))
    bias = torch.zeros(7, 11)
    bias[2] = LOWEST
    mine = _gradients(kernel, q, k, v, bias=bias)
    even = torch.where(bias[:, :1] == LOWEST, 0.0, q)  # a query of 0 attends evenly, as the formula says
    expected = _gradients("reference", *(t.double() for t in (even, k, v)))
    torch.testing.assert_close(mine[2].double(), expected[2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sinks", [None, torch.zeros(3)])
def test_equal_keys_with_huge_scores_share_the_gradient(kernel: str, sinks: Tensor | None) -> None:
    if kernel == "torch" and sinks is not None:
        pytest.skip("torch: sinks")
    q, k = torch.full((1, 3, 5, 64), 300.0), torch.full((1, 3, 11, 64), 300.0)  # scores of 720 000
    v = torch.randn(1, 3, 11, 7 if kernel != "torch" else 64)
    d_v = _gradients(kernel, q, k, v, sinks=sinks)[2]
    weight = torch.arange(15 * v.shape[-1]).view(1, 3, 5, -1).cos()
    torch.testing.assert_close(d_v, (weight.sum(-2, keepdim=True) / 11).expand_as(d_v), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("keys", [1, 3, 63, 64, 65, 129, 513])
def test_a_row_of_nothing_but_nan_is_nan(kernel: str, dtype: torch.dtype, keys: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 8, dtype=dtype) for n in (5, keys, keys))
    q[0, 0, 3, 0] = math.nan
    out, lse = solve(problem(q, k, v), kernel=kernel)
    expected = torch.zeros(1, 2, 5, dtype=torch.bool)
    expected[0, 0, 3] = True
    assert torch.equal(lse.isnan(), expected)
    assert torch.equal(out.isnan(), expected.unsqueeze(-1).expand_as(out))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("keys", [1, 65, 129])
def test_a_row_of_nothing_but_minus_infinity_attends_to_nothing(kernel: str, keys: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 8) for n in (5, keys, keys))
    q[0, 0, 3, 0] = math.inf
    k[..., 0] = -k[..., 0].abs() - 1
    out, lse = solve(problem(q, k, v), kernel=kernel)
    assert (out[0, 0, 3] == 0).all()
    assert lse[0, 0, 3] == -math.inf
    assert out.isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_bias_of_minus_infinity_hides_what_is_not_finite(kernel: str) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 5) for n in (7, 11, 11))
    bias = torch.zeros(7, 11)
    bias[:, 4:] = -math.inf
    bias[5] = -math.inf
    clean = (
        *solve(problem(q, k, v, bias=bias), kernel="reference"),
        *_gradients("reference", q, k, v, bias=bias),
    )
    k[:, :, 4:], v[:, :, 4:] = math.nan, math.inf
    mine = (*solve(problem(q, k, v, bias=bias), kernel=kernel), *_gradients(kernel, q, k, v, bias=bias))
    for one, other in zip(mine, clean, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@dataclass(frozen=True, eq=False, repr=False)
class Holding(Mask):
    """A mask that holds all sorts of things."""

    words: str
    numbers: tuple[float, ...]
    inner: Mask
    nothing: None = None


def test_a_mask_survives_being_packed() -> None:
    lengths = torch.tensor([3, 5])
    given = Holding('say "\\n\n"', (1, 2.5, -0.0, math.inf, -math.inf, 1e-300), KeyLengths(lengths))
    tensors: list[Tensor] = []
    back = unpack(pack(given, tensors), tensors)
    assert (back.words, back.numbers, back.nothing) == (given.words, given.numbers, None)
    assert back.inner.lengths is lengths
