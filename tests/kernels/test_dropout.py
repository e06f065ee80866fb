"""Dropout by counting: the same weights in every kernel, the right share of them, and no pattern."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from kernel_cases import Case, solve_with, willing
from torch import Tensor

from headwise.attention import attention, problem
from headwise.kernels import KERNELS, Problem
from headwise.kernels.dropout import keep, keep_at
from headwise.masks import Causal
from headwise.observers import Weights

SEEDS = (0, 1, 2, 12345, 2**61)


def seeded(seed: int, rate: float, *sizes: int) -> Tensor:
    """bool [batch, heads, q_len, k_len]: which weights stay."""
    batch, heads, q_len, k_len = sizes or (3, 5, 101, 97)
    return keep(call(seed, rate, batch, heads, q_len, k_len), slice(0, q_len), slice(0, k_len))


def call(seed: int, rate: float, batch: int, heads: int, q_len: int, k_len: int) -> Problem:
    q, k = torch.zeros(batch, heads, q_len, 1), torch.zeros(batch, heads, k_len, 1)
    return problem(q, k, k, dropout=rate, generator=torch.Generator().manual_seed(seed))


def sigmas(share: float, rate: float, count: int) -> float:
    """How many standard deviations of a binomial mean a share lies from the rate."""
    return abs(share - rate) / math.sqrt(rate * (1 - rate) / count)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_share_of_dropped_weights(seed: int, rate: float) -> None:
    """Over all weights within five standard deviations: one chance in 1.7 million, and seeds are fixed."""
    dropped = ~seeded(seed, rate)
    assert sigmas(dropped.double().mean().item(), rate, dropped.numel()) < 5


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_column_head_or_entry_is_special(seed: int) -> None:
    """The counts over each line of the block scatter as binomials do: the mean square of their standard
    scores is 1, give or take five of its own deviations, sqrt(2 / lines)."""
    rate = 0.3
    dropped = (~seeded(seed, rate)).double()
    for dims in ((3,), (2,), (1,), (0,), (0, 1), (2, 3), (0, 1, 3), (0, 1, 2)):
        counts = dropped.sum(dims)
        trials = dropped.numel() / counts.numel()
        scores = (counts - trials * rate) / math.sqrt(trials * rate * (1 - rate))
        assert abs(scores.square().mean().item() - 1) < 5 * math.sqrt(2 / counts.numel()), dims
        assert scores.abs().max() < 6, dims


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_are_independent(seed: int) -> None:
    """Correlations between a weight and the weight one, two, ... rows, columns, heads or entries on."""
    dropped = (~seeded(seed, 0.5)).double() - 0.5
    for dim, steps in ((3, (1, 2, 7, 32, 64)), (2, (1, 2, 7, 32, 64)), (1, (1, 2)), (0, (1,))):
        for step in steps:
            left = dropped.narrow(dim, 0, dropped.shape[dim] - step)
            right = dropped.narrow(dim, step, dropped.shape[dim] - step)
            correlation = (left * right).mean().item() / 0.25
            assert abs(correlation) < 5 / math.sqrt(left.numel()), (dim, step)


def test_rows_are_not_shifts_or_copies_of_each_other() -> None:
    """Pairs of whole rows over 4096 keys, of all heads, agree in half of their weights."""
    kept = seeded(3, 0.5, 2, 3, 11, 4096).reshape(-1, 4096)
    for one, other in itertools.combinations(range(len(kept)), 2):
        for shift in (0, 1):
            same = (kept[one].roll(shift) == kept[other]).double().mean().item()
            assert sigmas(same, 0.5, 4096) < 5.5, (one, other, shift)


def test_four_corners_of_a_rectangle_are_independent() -> None:
    """Rows and columns are mixed separately and joined by xor: were the joint not mixed again, the xor of
    the four corners would be fixed."""
    kept = seeded(5, 0.5, 1, 1, 512, 512)[0, 0]
    corners = kept[:-1, :-1] ^ kept[1:, :-1] ^ kept[:-1, 1:] ^ kept[1:, 1:]
    assert sigmas(corners.double().mean().item(), 0.5, corners.numel()) < 5


def test_one_seed_one_mask_and_other_seeds_others() -> None:
    first = seeded(7, 0.5)
    assert torch.equal(first, seeded(7, 0.5))
    for seed in (8, 9, 12345):
        same = (first == seeded(seed, 0.5)).double().mean().item()
        assert sigmas(same, 0.5, first.numel()) < 5
    # Every bit of the drawn seed counts.
    rows, cols = torch.arange(199), torch.arange(211)
    drawn = 0x2545F4914F6CDD1D >> 2
    first = keep_at(torch.tensor(drawn), 0.5, rows, cols)
    for bit in range(62):
        same = (first == keep_at(torch.tensor(drawn ^ (1 << bit)), 0.5, rows, cols)).double().mean().item()
        assert sigmas(same, 0.5, first.numel()) < 5, bit


def test_a_higher_rate_drops_more_of_the_same() -> None:
    """One draw per weight, compared with the rate: what 0.3 drops, 0.5 drops too."""
    low, high = ~seeded(7, 0.3), ~seeded(7, 0.5)
    assert (high | ~low).all()
    assert keep_at(torch.tensor(1), 0.0, torch.arange(99), torch.arange(99)).all()


def test_a_draw_depends_on_its_place_alone() -> None:
    """Not on the block, the slab of batch entries or the group of heads that it is computed in."""
    given = call(11, 0.5, 3, 4, 19, 23)
    whole = keep(given, slice(0, 19), slice(0, 23))
    assert torch.equal(keep(given, slice(5, 11), slice(7, 13)), whole[:, :, 5:11, 7:13])
    scattered = torch.tensor([22, 0, 13])
    assert torch.equal(keep(given, slice(5, 11), scattered), whole[:, :, 5:11, scattered])
    assert torch.equal(keep(given, slice(0, 19), slice(0, 23), slice(1, 3)), whole[:, 1:3])
    assert torch.equal(keep(given.select(slice(1, 3)), slice(0, 19), slice(0, 23)), whole[1:3])
    assert torch.equal(
        keep(given.select(slice(1, 3)).select(slice(1, 2)), slice(0, 19), slice(0, 23)), whole[2:3]
    )


def test_batches_without_names_are_those_of_one_dimension() -> None:
    """[2, 3, ...] drops what [6, ...] drops."""
    torch.manual_seed(0)
    q = torch.randn(2, 3, 2, 7, 5)
    flat = q.flatten(0, 1)
    for kernel in ("tiled", "reference"):
        outs = [
            attention(x, x, x, dropout=0.5, kernel=kernel, generator=torch.Generator().manual_seed(4))
            for x in (q, flat)
        ]
        torch.testing.assert_close(outs[0].flatten(0, 1), outs[1])


@pytest.mark.parametrize("q_len", [7, 300])
def test_every_kernel_drops_the_same_weights(q_len: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(5, 4, n, 8, dtype=torch.float64) for n in (q_len, 600, 600))
    given = Case(q, k, v, {"dropout": 0.4, "mask": Causal()}, seed=9).problem()
    kernels = willing(given)
    assert {"tiled", "reference"} <= {kernel.name for kernel in kernels}
    results = [solve_with(kernel, given) for kernel in kernels]
    for other in results[1:]:
        for name, mine in other.parts().items():
            torch.testing.assert_close(mine, results[0].parts()[name], rtol=1e-9, atol=1e-10)


def test_the_mean_over_seeds_is_attention_without_dropout() -> None:
    """E[dropout(P)] = P. The deviation of the mean of 400 draws is below 5 of its standard errors."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 3, dtype=torch.float64) for n in (5, 7, 7))
    generator = torch.Generator().manual_seed(1)
    draws = torch.stack([attention(q, k, v, dropout=0.25, generator=generator) for _ in range(400)])
    error = (draws.mean(0) - attention(q, k, v)).abs()
    assert (error < 5 * draws.std(0) / 20).all()


def test_kept_weights_grow_by_what_is_dropped() -> None:
    """With the identity for values, the output is the matrix of weights itself."""
    torch.manual_seed(0)
    q, k = (torch.randn(1, 1, 9, 3, dtype=torch.float64) for _ in range(2))
    v = torch.eye(9, dtype=torch.float64).view(1, 1, 9, 9)
    out, seen = attention(
        q, k, v, dropout=0.25, generator=torch.Generator().manual_seed(2), observe=[Weights()]
    )
    kept = out > 0
    assert 0 < kept.sum() < 81
    torch.testing.assert_close(out[kept], (seen.weights / 0.75)[kept])
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(1, 1, 9, dtype=torch.float64))


def test_a_generator_advances_once_per_call() -> None:
    q = torch.randn(1, 1, 5, 3)
    used, counted = torch.Generator().manual_seed(6), torch.Generator().manual_seed(6)
    for _ in range(3):
        attention(q, q, q, dropout=0.5, generator=used)
        torch.randint(0, 2**62, (), generator=counted)
        assert torch.equal(used.get_state(), counted.get_state())
    before = used.get_state()
    attention(q, q, q, dropout=0.0, generator=used)
    assert torch.equal(used.get_state(), before), "without dropout, nothing is drawn"


def test_the_default_generator_serves_where_none_is_given() -> None:
    q = torch.randn(1, 1, 9, 3)
    torch.manual_seed(8)
    first, second = attention(q, q, q, dropout=0.5), attention(q, q, q, dropout=0.5)
    torch.manual_seed(8)
    assert torch.equal(attention(q, q, q, dropout=0.5), first)
    assert not torch.equal(first, second)


def test_the_backward_pass_drops_what_the_forward_pass_dropped() -> None:
    """d v_j = sum_i dropout(P)_ij d out_i: with d out = 1, a key that every row dropped gets 0."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 2, 3, dtype=torch.float64) for _ in range(3))
    eye = torch.eye(2, dtype=torch.float64).view(1, 1, 2, 2)
    for kernel in (k.name for k in KERNELS if k.name in ("tiled", "reference")):
        for seed in range(20):
            weights = attention(
                q, k, eye, dropout=0.6, kernel=kernel, generator=torch.Generator().manual_seed(seed)
            )
            leaf = v.clone().requires_grad_()
            out = attention(
                q, k, leaf, dropout=0.6, kernel=kernel, generator=torch.Generator().manual_seed(seed)
            )
            out.sum().backward()
            torch.testing.assert_close(leaf.grad, weights.sum(-2).unsqueeze(-1).expand_as(v))
