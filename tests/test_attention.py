"""`attention` from the outside: numbers that can be checked on paper, shapes, and options in concert."""

from __future__ import annotations

import inspect
import math
from typing import get_type_hints

import pytest
import torch
from torch import Tensor

import headwise as hw
from headwise.attention import Options, attention, explain, problem, solve

KERNELS = ["auto", "torch", "tiled", "reference"]
LOG = math.log


def one_head(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).unsqueeze(0)  # [heads = 1, length, d]


@pytest.mark.parametrize("kernel", KERNELS)
def test_on_paper(kernel: str) -> None:
    """q . k of log 1, log 2, log 5: weights 1/8, 2/8, 5/8. Values 8, 80, 800: 1 + 20 + 500 = 521."""
    q, k = one_head([[1.0]]), one_head([[LOG(1)], [LOG(2)], [LOG(5)]])
    v = one_head([[8.0], [80.0], [800.0]])
    out, seen = attention(q, k, v, observe=[hw.Weights(), hw.LogSumExp()], kernel=kernel)
    torch.testing.assert_close(out, one_head([[521.0]]))
    torch.testing.assert_close(seen.weights, one_head([[1 / 8, 2 / 8, 5 / 8]]))
    torch.testing.assert_close(seen.log_sum_exp, torch.tensor([[LOG(8)]]).double())


@pytest.mark.parametrize("kernel", ["auto", "tiled", "reference"])
def test_each_option_on_paper(kernel: str) -> None:
    q, k = one_head([[1.0]]), one_head([[LOG(1)], [LOG(2)], [LOG(5)]])
    v = one_head([[8.0], [80.0], [800.0]])

    def run(**options: object) -> float:
        return attention(q, k, v, kernel=kernel, **options).item()  # type: ignore[arg-type]

    assert run(mask=hw.KeyLengths(2)) == pytest.approx((8 + 2 * 80) / 3)
    assert run(mask=hw.Causal(), align="start") == pytest.approx(8)
    assert run(mask=hw.Window(1, 0)) == pytest.approx((2 * 80 + 5 * 800) / 7)
    assert run(scale=2.0) == pytest.approx((8 + 4 * 80 + 25 * 800) / 30)
    assert run(bias=torch.tensor([LOG(5), LOG(5), LOG(2)]).double()) == pytest.approx(
        (5 * 8 + 800 + 8000) / 25
    )
    # A sink of log 8 takes half of the probability.
    assert run(sinks=torch.tensor([LOG(8)]).double()) == pytest.approx(521 / 2)
    # Slope log 2: a key two back is a quarter of what it was, one back half.
    slope = hw.ALiBi(torch.tensor([LOG(2)]).double())
    assert run(bias=slope) == pytest.approx((8 / 4 + 2 * 80 / 2 + 5 * 800) / (1 / 4 + 2 / 2 + 5))
    # tanh(log 2 / 1) = 3/5, tanh(log 5 / 1) = 12/13
    parts = (1.0, math.exp(3 / 5), math.exp(12 / 13))
    assert run(softcap=1.0) == pytest.approx((parts[0] * 8 + parts[1] * 80 + parts[2] * 800) / sum(parts))


def test_the_default_scale_is_that_of_the_paper() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 16) for _ in range(3))
    assert torch.equal(attention(q, k, v), attention(q, k, v, scale=1 / 4))


@pytest.mark.parametrize("kernel", ["auto", "tiled", "reference"])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (2, 1, 3), (1, 1, 1, 2)])
def test_any_number_of_batch_dimensions(batch: tuple[int, ...], kernel: str) -> None:
    """Each entry is what it would be alone; masks and biases per entry keep to theirs."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(*batch, heads, n, d, dtype=torch.float64)
        for heads, n, d in ((4, 5, 3), (2, 7, 3), (2, 7, 11))
    )
    lengths = torch.randint(1, 8, batch)
    bias = torch.randn(*batch, 1, 5, 7, dtype=torch.float64)
    positions = torch.randint(0, 9, (*batch, 5))
    out, seen = attention(
        q,
        k,
        v,
        mask=hw.KeyLengths(lengths) & hw.Window(4, 5),
        bias=bias,
        q_positions=positions,
        observe=[hw.Entropy()],
        kernel=kernel,
    )
    assert out.shape == (*batch, 4, 5, 11)
    assert seen.entropy.shape == (*batch, 4, 5)
    for entry in torch.cartesian_prod(*(torch.arange(n) for n in (*batch, 1))).reshape(-1, len(batch) + 1):
        at = tuple(entry[:-1].tolist())
        alone, seen_alone = attention(
            q[at],
            k[at],
            v[at],
            mask=hw.KeyLengths(lengths[at]) & hw.Window(4, 5),
            bias=bias[at],
            q_positions=positions[at],
            observe=[hw.Entropy()],
            kernel=kernel,
        )
        torch.testing.assert_close(out[at], alone)
        torch.testing.assert_close(seen.entropy[at], seen_alone.entropy)


def test_keys_of_one_sequence_serve_a_whole_batch() -> None:
    torch.manual_seed(0)
    q = torch.randn(3, 2, 4, 5, 7)
    for lead in ((), (1,), (2,), (1, 1), (3, 1), (1, 2)):
        k, v = torch.randn(*lead, 2, 11, 7), torch.randn(*lead, 2, 11, 7)
        full = [t.expand(3, 2, 2, 11, 7).contiguous() for t in (k, v)]
        torch.testing.assert_close(attention(q, k, v), attention(q, *full))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types_of_results(dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, 3, 5, 7).to(dtype) for _ in range(3))
    for kernel in KERNELS:
        out, lse = solve(problem(q, k, v), kernel=kernel)
        assert out.dtype == dtype
        assert lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_results_are_new_tensors() -> None:
    """Writing into a result never reaches an argument."""
    q, k, v = (torch.randn(1, 2, 3, 5) for _ in range(3))
    for kernel in KERNELS:
        copies = [t.clone() for t in (q, k, v)]
        attention(q, k, v, kernel=kernel).zero_()
        assert all(torch.equal(a, b) for a, b in zip((q, k, v), copies, strict=True))


def test_the_same_call_gives_the_same_bits() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 130, 5) for _ in range(3))
    mask = hw.Causal() & hw.Window(20, 0)
    for kernel in KERNELS:
        first = attention(q, k, v, mask=mask, kernel=kernel)
        assert all(torch.equal(attention(q, k, v, mask=mask, kernel=kernel), first) for _ in range(3))


def test_more_batch_entries_change_nothing_of_one() -> None:
    """An entry gives the same numbers alone and in company."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(5, 3, 67, 7, dtype=torch.float64) for _ in range(3))
    for kernel in KERNELS:
        many = attention(q, k, v, mask=hw.Causal(), kernel=kernel)
        one = attention(q[2:3], k[2:3], v[2:3], mask=hw.Causal(), kernel=kernel)
        torch.testing.assert_close(many[2:3], one, rtol=1e-13, atol=1e-13)


def test_every_function_takes_the_same_options() -> None:
    """`attention`, `problem`, `explain` and the type of their options can't drift apart."""
    of_attention = set(inspect.signature(attention).parameters) - {"q", "k", "v", "observe", "kernel"}
    of_problem = set(inspect.signature(problem).parameters) - {"q", "k", "v"}
    assert of_attention == of_problem == set(get_type_hints(Options))
    choice = explain(*(torch.zeros(1, 1, 2, 3) for _ in range(3)), strict=True)
    assert choice.problem.strict
