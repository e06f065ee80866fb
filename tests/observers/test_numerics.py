"""Numerical limits: what 16-bit inputs, long sequences and extreme scores do to a statistic."""

from __future__ import annotations

from dataclasses import replace

import dense_observations as dense
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.kernels import measure as measuring
from headwise.kernels.measure import measure
from headwise.kernels.problem import Problem
from headwise.masks import Causal, Frame
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    MaxWeight,
    Offset,
    Spread,
    TopKeys,
    Weights,
)


def rounded(p, dtype):
    """The problem with inputs of `dtype`, and the same values in float64."""
    low = replace(p, q=p.q.to(dtype), k=p.k.to(dtype), v=p.v.to(dtype))
    return low, replace(p, q=low.q.double(), k=low.k.double(), v=low.v.double())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_16_bit_inputs_lose_nothing_more(dtype, autocast):
    """Entropy by way of bfloat16 products is off by 0.045 to 0.14 nats; from float32 scores of the same
    values by less than 1e-4 (scores up to 97, a key that takes most)."""
    p = dense.problem((1,), 2, 1, 509, 509, d_k=64, mask=Causal(), scale=1.0)
    p.k[:, :, 0] += 3  # a sink
    low, same = rounded(p, dtype)
    assert dense.scores(same)[dense.scores(same).isfinite()].abs().max() > 80
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        seen = measure(low, [Entropy(), LogSumExp(), Distance(), KeyMass(), Weights()])
    w = dense.weights(same)
    assert all(result.dtype == torch.float32 for result in seen.values())
    assert (seen.entropy - torch.special.entr(w).sum(-1)).abs().max() < 1e-4
    assert (seen.log_sum_exp - dense.lse(same)).abs().max() < 1e-4
    torch.testing.assert_close(seen.key_mass.double(), w.sum(-2), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(seen.weights.double(), w, rtol=1e-4, atol=1e-6)
    assert seen.row_sum_error < 5e-6


def three_alike(position, dtype=torch.float32):
    """One query at `position` and its two neighbours and itself as keys, all of one weight."""
    frame = Frame.of(
        (1,),
        1,
        1,
        3,
        q_pos=torch.tensor([position]),
        k_pos=torch.tensor([position - 1, position, position + 1]),
    )
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2)
    return Problem(q.to(dtype), k.to(dtype), v.to(dtype), frame, scale=1.0)


@pytest.mark.parametrize("position", [1, 2048, 32768, 131072, 16_777_217])
def test_positions_of_any_size_lose_nothing(position):
    """By E[j^2] - E[j]^2 in float32 the variance of three adjacent keys (2/3) is 0.5 at 2048, -128 at
    32768 and -2048 at 131072; centred differences don't care."""
    seen = measure(three_alike(position), [Spread(), Distance(), Offset(1)])
    assert seen.spread.item() == pytest.approx(2 / 3, rel=1e-6)
    assert seen.distance.item() == pytest.approx(2 / 3, rel=1e-6)
    assert seen.offset.item() == pytest.approx(1 / 3, rel=1e-6)


def test_the_short_formula_does_break():
    """The reason why differences are centred: float32 is 64 apart at 32768^2."""
    j = torch.tensor([32767.0, 32768.0, 32769.0])
    assert abs((j.square().mean() - j.mean().square()).item() - 2 / 3) > 0.5


def two_keys(gap):
    """One query whose two scores are apart by `gap`: weights sigmoid(gap) and sigmoid(-gap)."""
    q, k = torch.tensor([[[[1.0]]]]), torch.tensor([[[[gap], [0.0]]]])
    return Problem(q, k, k, Frame.of((1,), 1, 1, 2), scale=1.0)


@pytest.mark.parametrize("gap", [0.0, 1.0, 20.0, 90.0, 120.0, 5000.0, -5000.0, 3e38])
def test_entropy_of_two_keys(gap):
    """H = log(1 + e^-g) + g / (1 + e^g), also where one weight is 0 in float32; never NaN, never below 0."""
    g = torch.tensor(abs(gap), dtype=torch.float64)
    expected = torch.log1p((-g).exp()) + g * torch.sigmoid(-g)
    seen = measure(two_keys(gap), [Entropy(), MaxWeight(), TopKeys(2)])
    assert seen.entropy.item() == pytest.approx(expected.item(), abs=2e-7, rel=1e-5)
    assert seen.entropy.item() >= 0
    assert seen.max_weight.key.item() == (0 if gap >= 0 else 1)
    assert sorted(seen.top_keys.indices.flatten().tolist()) == [0, 1]  # both visible, though one weighs 0


@given(n=st.integers(1, 300), exponent=st.floats(-3, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_bounds(n, exponent, seed):
    """0 <= H <= log n, 1/n <= max weight <= 1, exp(-H) <= max weight; masses add up to the queries."""
    p = dense.as_float32(dense.problem((1,), 2, 1, 3, n, scale=10**exponent, seed=seed))
    seen = measure(p, [Entropy(), MaxWeight(), KeyMass(), Map(7)])
    slack = 1e-5
    assert (seen.entropy >= 0).all()
    assert (seen.entropy <= torch.tensor(float(n)).log() + slack).all()
    assert (seen.max_weight.value <= 1 + slack).all()
    assert (seen.max_weight.value >= (-seen.entropy).exp() - slack).all()
    torch.testing.assert_close(seen.key_mass.sum(-1), torch.full((1, 2), 3.0))
    torch.testing.assert_close(seen.map.sum(-1), torch.ones(1, 2, 3))


@given(q_len=st.integers(0, 70), k_len=st.integers(0, 150), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_any_lengths(q_len, k_len, seed):
    p = dense.problem((2,), 2, 1, q_len, k_len, mask=Causal(), seed=seed)
    seen = measure(
        p, [Weights(), Entropy(), TopKeys(3), MaxWeight(), KeyMass(), Map(5), Offset(0), LogSumExp()]
    )
    w = dense.weights(p)
    torch.testing.assert_close(seen.weights, w)
    torch.testing.assert_close(seen.entropy, torch.special.entr(w).sum(-1))
    torch.testing.assert_close(seen.log_sum_exp, dense.lse(p))
    torch.testing.assert_close(seen.key_mass, w.sum(-2))
    assert seen.top_keys.indices.shape == (2, 2, q_len, 3)
    assert seen.max_weight.key.shape == (2, 2, q_len)
    assert seen.map.shape == (2, 2, min(5, q_len), min(5, k_len))


def alike(q_len, k_len):
    """Queries that give every key 1 / k_len."""
    q, k = torch.zeros(1, 1, q_len, 2), torch.zeros(1, 1, k_len, 2)
    return Problem(q, k, k, Frame.of((1,), 1, q_len, k_len), scale=1.0)


@pytest.mark.parametrize("cells", [(1, 1), (2, 3)])
@pytest.mark.parametrize("sizes", [(67, 30_011), (30_011, 67)])
def test_maps_of_many_equal_numbers_do_not_drift(cells, sizes):
    """One by one, float32 sums of 30,011 equal numbers are off by 6 in 100,000 and more."""
    p = alike(*sizes)
    (picture,) = measure(p, [Map(cells)]).values()
    share = torch.bincount(torch.arange(sizes[1]) * cells[1] // sizes[1]).double() / sizes[1]
    torch.testing.assert_close(picture[0, 0].double(), share.expand(cells), rtol=5e-7, atol=0.0)


@pytest.mark.parametrize("observer", [KeyMass(), Map((1, 3))])
def test_sums_over_many_blocks_do_not_drift(observer, monkeypatch):
    """Of 4,001 blocks of one query each."""
    monkeypatch.setattr(measuring, "CPU_BLOCK", 1)
    (found,) = measure(alike(4001, 3), [observer]).values()
    right = 4001 / 3 if isinstance(observer, KeyMass) else 1 / 3
    torch.testing.assert_close(found.double(), torch.full_like(found, right).double(), rtol=5e-7, atol=0.0)


def test_the_self_check_finds_a_wrong_kernel():
    """Kernels have returned log-sum-exp in base 2 (pytorch#181645) or 0 for dead rows."""
    p = dense.problem(mask=Causal(), q_len=71, k_len=37)
    right = dense.lse(p)
    seen = measure(p, [Entropy()], lse=right)
    assert seen.row_sum_of == "kernel"
    assert seen.row_sum_error < 1e-12
    off = torch.where(right.isfinite(), right + 0.01, right)
    torch.testing.assert_close(
        measure(p, [Entropy()], lse=off).row_sum_error, 1 - torch.tensor(-0.01, dtype=torch.float64).exp()
    )
    zero = torch.where(right.isfinite(), right, 0.0)
    assert measure(p, [Entropy()], lse=zero).row_sum_error == float("inf")
    # the statistics themselves don't depend on it
    assert torch.equal(measure(p, [Entropy()], lse=off).entropy, seen.entropy)


def test_the_self_check_counts_the_sink():
    p = dense.problem(mask=Causal(), sinks=True)
    assert measure(p, [Entropy()]).row_sum_error < 1e-12
    assert measure(p, [Entropy()], lse=dense.lse(p)).row_sum_error < 1e-12
    assert (measure(p, [Weights()]).weights.sum(-1) < 1).all()
