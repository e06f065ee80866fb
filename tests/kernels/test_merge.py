"""Results over disjoint sets of keys join into the result over all of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import Case, examples
from torch import Tensor
from torch.autograd import gradcheck

from headwise import merge
from headwise.attention import attention, problem, solve
from headwise.masks import Allow
from headwise.observers import LogSumExp

INF = float("inf")


def drawn(k_len: int = 13, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (7, k_len, k_len))
    return q.to(dtype), k.to(dtype), v.to(dtype)


@examples(60)
@given(st.lists(st.integers(0, 4), min_size=13, max_size=13), st.booleans(), st.booleans())
def test_any_partition_of_the_keys_gives_the_whole(parts: list[int], sinks: bool, cut: bool) -> None:
    """As keys of their own (`cut`), or as a mask over all of them. Part 4 often holds nothing at all."""
    q, k, v = drawn()
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64) if sinks else None
    numbers = torch.tensor(parts)
    results = []
    for part in range(5):
        own = numbers == part
        options = {"sinks": logits if part == 0 else None}  # the sink is in one part alone
        if cut:
            given = problem(q, k[:, :, own], v[:, :, own], **options)
        else:
            given = problem(q, k, v, mask=Allow(own), **options)
        results.append(solve(given))
    out, lse = merge(results)
    want_out, want_lse = solve(problem(q, k, v, sinks=logits))
    torch.testing.assert_close(out, want_out, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(lse, want_lse, rtol=1e-12, atol=1e-13)


def test_an_empty_part_is_the_identity() -> None:
    q, k, v = drawn()
    one = solve(problem(q, k, v))
    nothing = solve(problem(q, k[:, :, :0], v[:, :, :0]))
    for parts in ([one], [one, nothing], [nothing, one], [nothing, nothing, one]):
        out, lse = merge(parts)
        torch.testing.assert_close(out, one[0], rtol=1e-14, atol=1e-15)
        torch.testing.assert_close(lse, one[1], rtol=1e-14, atol=1e-15)
    out, lse = merge([nothing, nothing])
    assert (out == 0).all()
    assert (lse == -INF).all()


def test_the_order_of_parts_does_not_matter() -> None:
    q, k, v = drawn()
    parts = [solve(problem(q, k[:, :, i::3], v[:, :, i::3])) for i in range(3)]
    forth, back = merge(parts), merge(parts[::-1])
    for mine, theirs in zip(forth, back, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-13, atol=1e-14)
    nested = merge([parts[0], merge(parts[1:])])
    torch.testing.assert_close(nested[0], forth[0], rtol=1e-13, atol=1e-14)


def test_far_apart_parts_neither_overflow_nor_vanish() -> None:
    """On paper: shares e^0 : e^-2000 are 1 : 0, and of two equal parts the mean is left."""
    ones, twos = torch.ones(1, 1, 1, 1), torch.full((1, 1, 1, 1), 2.0)
    high, low = torch.full((1, 1, 1), 1000.0), torch.full((1, 1, 1), -1000.0)
    out, lse = merge([(ones, high), (twos, low)])
    assert out.item() == 1
    assert lse.item() == 1000
    out, lse = merge([(ones, high), (twos, high)])
    assert out.item() == 1.5
    assert lse.item() == pytest.approx(1000 + math.log(2))


def test_gradients_flow_through_both_outputs_of_every_part() -> None:
    q, k, v = (t[:1, :2, :5].clone().requires_grad_() for t in drawn(5))

    def joined(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        parts = [solve(problem(q, k[:, :, own], v[:, :, own])) for own in (slice(0, 2), slice(2, 5))]
        dead = solve(problem(q, k, v, mask=Allow(torch.zeros(1, dtype=torch.bool))))
        return merge([*parts, dead])

    assert gradcheck(joined, (q, k, v))
    got = torch.autograd.grad(joined(q, k, v)[0].square().sum(), (q, k, v))
    want = torch.autograd.grad(attention(q, k, v).square().sum(), (q, k, v))
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_nothing_attended_to_sends_back_nothing() -> None:
    out, lse = torch.zeros(1, 1, 2, 3, requires_grad=True), torch.full((1, 1, 2), -INF, requires_grad=True)
    joined, _ = merge([(out, lse), (out, lse)])
    grads = torch.autograd.grad(joined.sum(), (out, lse))
    assert all((grad == 0).all() for grad in grads)


def test_nan_in_a_part_is_not_hidden() -> None:
    q, k, v = drawn()
    spoiled = k.clone()
    spoiled[0, 1, 2] = float("nan")
    parts = [
        solve(problem(q, keys[:, :, own], v[:, :, own]))
        for keys, own in ((spoiled, slice(0, 5)), (k, slice(5, 13)))
    ]
    out, lse = merge(parts)
    assert out[0, 1].isnan().all()
    assert lse[0, 1].isnan().all()
    assert out[1].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_joined_in_float32(dtype: torch.dtype) -> None:
    q, k, v = drawn(dtype=dtype)
    parts = []
    for own in (slice(0, 5), slice(5, 13)):
        out, seen = attention(q, k[:, :, own], v[:, :, own], observe=[LogSumExp()])
        assert seen.log_sum_exp.dtype == torch.float32
        parts.append((out, seen.log_sum_exp))
    out, _ = merge(parts)
    assert out.dtype == dtype
    want = attention(*(t.double() for t in (q, k, v)))
    assert (out.double() - want).abs().max() < 2 * torch.finfo(dtype).eps


def test_mistakes_are_named() -> None:
    q, k, v = drawn()
    out, lse = solve(Case(q, k, v).problem())
    with pytest.raises(ValueError, match="at least one part"):
        merge([])
    with pytest.raises(ValueError, match=r"part 1 has out \[2, 3, 5, 5\].*\[2, 3, 7, 5\]"):
        merge([(out, lse), (out[:, :, :5], lse[:, :, :5])])
    with pytest.raises(ValueError, match="part 0 has out"):
        merge([(out, lse.unsqueeze(-1))])
