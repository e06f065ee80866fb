"""What the compiled kernel observes in its own pass is what the observers say of the formula."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from native_sets import SETS
from torch import Tensor

import headwise as hw
from headwise.attention import attention, problem
from headwise.kernels import native_observe
from headwise.kernels.measure import measure
from headwise.kernels.native_build import native
from headwise.kernels.sdpa import TorchFused
from headwise.kernels.tiled import Tiled
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Window
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Offset,
    Spread,
    TopKeys,
    Weights,
)

pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built")

measuring = sys.modules["headwise.kernels.measure"]

OWN = [
    Entropy(),
    LogSumExp(),
    Distance(),
    MaxWeight(),
    TopKeys(3),
    TopKeys(70),
    Offset(-1),
    Offset(2),
    KeyMass(),
]
OWN += [Map(7), Map((200, 3)), Spread(), Mass([0, -5]), Mass(torch.arange(130) % 3 == 0)]
OWN += [
    Mass(torch.stack([torch.arange(130) % 70 - 1, torch.arange(130) % 2 - 1]), classes=69),
    Mass(torch.arange(130) // 60 - 1, classes=["near", "far"]),
]
OTHERS = [
    Weights(rows=[3, 0]),
    Entropy(heads=[1]),
    KeyMass(rows=[-1]),
    Spread(rows=[7]),
    Mass([1], heads=[0]),
]
OTHERS += [Mass(torch.arange(130) % 300, classes=300)]
MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": Causal(),
    "dead rows": Causal() & KeyLengths([0, 90]),
    "documents": Documents(torch.arange(140) // 37) & Causal() & Window(20, 0),
    "pairs": Allow(torch.arange(110 * 130).view(110, 130) % 7 > 2),
}


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, heads, n, d, generator=generator)
        for heads, n, d in ((4, 110, 24), (2, 130, 24), (2, 130, 40))
    )
    return q * 3, k, v


def flat(result: Any) -> tuple[Tensor, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", list(MASKS))
@pytest.mark.parametrize("options", [{}, {"sinks": torch.ones(4), "softcap": 4.0}, {"dropout": 0.4}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_they_are_those_of_the_formula(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    q, k, v = (x.to(dtype) for x in drawn())
    mask = MASKS[name]
    exact_options = {key: x.double() if isinstance(x, Tensor) else x for key, x in options.items()}
    want = measure(problem(q.double(), k.double(), v.double(), mask=mask, **exact_options), OWN + OTHERS)
    seed = torch.Generator().manual_seed(5)
    out, seen = attention(
        q, k, v, mask=mask, observe=OWN + OTHERS, kernel="native", generator=seed, **options
    )
    plain = attention(
        q, k, v, mask=mask, kernel="native", generator=torch.Generator().manual_seed(5), **options
    )
    assert torch.equal(out, plain)
    assert list(seen) == list(want)
    assert seen.row_sum_error < 1e-4
    for observer in OWN + OTHERS:
        for mine, right in zip(flat(seen[observer]), flat(want[observer]), strict=True):
            if mine.is_floating_point():
                torch.testing.assert_close(mine.double(), right, rtol=2e-4, atol=2e-4, msg=observer.name)
            else:  # keys whose weights differ in float32's last digits may change places
                assert (mine == right).float().mean() > 0.99, observer.name
                assert torch.equal(mine < 0, right < 0), observer.name


def test_the_kernel_answers_what_it_can_and_nothing_that_needs_a_gradient() -> None:
    q, k, v = drawn()
    given = problem(q, k, v, mask=Causal()).flatten()
    assert native_observe.share(given, OWN + OTHERS) == [one for one in OWN if one.name != "top_keys[70]"]
    at = problem(q, k, v, mask=Causal(), q_positions=torch.arange(110)).flatten()
    (only,) = native_observe.share(at, [Distance(), Offset(1), Entropy()])
    assert only.name == "entropy"
    assert len(native_observe.share(at, [Spread(), Mass([0])])) == 2  # keys' places alone
    at = problem(q, k, v, k_positions=torch.arange(130) * 2).flatten()
    assert native_observe.share(at, [Spread()]) == []
    leaves = [x.requires_grad_() for x in (q, k, v)]
    assert native_observe.share(problem(*leaves).flatten(), OWN) == []
    with torch.no_grad():
        assert native_observe.share(problem(*leaves).flatten(), OWN) != []
    _, seen = attention(*leaves, observe=[Entropy()], kernel="native")
    assert seen.entropy.requires_grad


def test_numbers_that_are_not_finite_are_measured_as_ever() -> None:
    q, k, v = drawn()
    k[0, 0, 3] = float("nan")
    found = [
        attention(q, k, v, observe=[Entropy(), KeyMass()], kernel=name)[1] for name in ("native", "tiled")
    ]
    assert torch.equal(found[0].entropy.isnan(), found[1].entropy.isnan())


@pytest.mark.parametrize("kernel", ["reference", "tiled", "torch", "auto", "native"])
def test_a_kernel_that_was_asked_for_is_observed_by_its_own_way(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the compiled one, which would be taken for the other's word, and would hide a fault of its own
    from whoever compares the two: in a call, in a layer, and in a recorded model."""
    asked: list[str] = []
    real = measuring.forward_observed

    def watched(*given: Any) -> Any:
        asked.append(kernel)
        return real(*given)

    monkeypatch.setattr(measuring, "forward_observed", watched)
    q, k, v = drawn()
    v = v[..., :24]  # as wide as the fused operation wants it
    layer = hw.MultiHeadAttention(64, 4, kernel=kernel).eval()
    x = torch.randn(2, 70, 64)
    with torch.no_grad():
        attention(q, k, v, observe=[Entropy(), KeyMass()], kernel=kernel)
        layer(x, observe=[Entropy()])
        with hw.observe(layer, Entropy()) as seen:
            layer(x)
        assert seen.layers
    assert len(asked) == (3 if kernel in ("auto", "native") else 0)


@pytest.mark.parametrize("kernel", ["native", "auto", "tiled", "torch"])
@pytest.mark.parametrize("off", [0.0, 0.01])
def test_the_row_sum_error_is_measured(kernel: str, off: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log-sum-exp that is off by 0.01 makes rows of exp(score - lse) miss 1 by 0.01, whoever observes."""
    real, fused, strips = native_observe.forward, TorchFused.forward, Tiled.forward

    def wrong(*given: Any) -> tuple[Any, ...]:
        out, lse, finite = real(*given)
        return out, lse + off, finite

    monkeypatch.setattr(native_observe, "forward", wrong)
    for kind, right in ((TorchFused, fused), (Tiled, strips)):

        def also(self: Any, given: Any, right: Any = right) -> tuple[Tensor, Tensor]:
            out, lse = right(self, given)
            return out, lse + off

        monkeypatch.setattr(kind, "forward", also)
    q, k, v = drawn()
    for sinks in (None, torch.ones(4)) if kernel != "torch" else (None,):
        _, seen = attention(q, k, v[..., :24], observe=[Entropy()], mask=Causal(), sinks=sinks, kernel=kernel)
        assert seen.row_sum_of == "kernel"
        assert seen.row_sum_error.item() == pytest.approx(1 - math.exp(-off), abs=5e-6)


@pytest.fixture
def kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No block is measured beside the compiled kernel, save in float64, to compare with."""
    real = measuring._run

    def watched(job: Any) -> Any:
        assert job.problem.q.dtype == torch.float64, "measured block by block"
        return real(job)

    monkeypatch.setattr(measuring, "_run", watched)


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest, native_as_it_was: None) -> str:
    name: str = request.param
    assert native.use_isa(name)
    return name


@pytest.mark.usefixtures("kernel_alone")
@pytest.mark.parametrize("k_len", [1, 130])
@pytest.mark.parametrize("q_len", [1, 2, 5, 9, 110])
@pytest.mark.parametrize("size", [1.0, 30.0, 3e4])
def test_large_scores_lose_nothing(size: float, q_len: int, k_len: int) -> None:
    """A weight made as exp(score - lse) is off by the rounding of lse, by 0.005 at 1e4, and by as much where
    the pass over keys rounds scores otherwise than the one before (few rows have products of their own)."""
    q, k, v = drawn()
    q, k = (F.pad(x, (0, 8)) for x in (q[:, :, :q_len], k))  # 32 columns: whole vectors
    _, seen = attention(
        q,
        k[:, :, :k_len] * size,
        v[:, :, :k_len],
        observe=[Entropy(), MaxWeight(), KeyMass()],
        kernel="native",
    )
    assert (seen.entropy >= 0).all()
    assert (seen.max_weight.value <= 1 + 1e-6).all()
    torch.testing.assert_close(seen.key_mass.sum(-1), torch.full((2, 4), float(q_len)), rtol=5e-6, atol=0.0)
    if k_len == 1:
        torch.testing.assert_close(seen.entropy, torch.zeros(2, 4, q_len), rtol=0.0, atol=5e-6)


def close(seen: Any, right: Any, observers: list[Any], rtol: float, atol: float) -> None:
    for one in observers:
        for got, want in zip(flat(seen[one]), flat(right[one]), strict=True):
            error = (got.double() - want).abs() - rtol * want.abs()
            assert (error <= atol).all(), f"{one.name}: {error.max()} off"


EVERY = [Entropy(), Distance(), Spread(), MaxWeight(), TopKeys(4)]
EVERY += [Offset(-1), Mass([0, 7]), KeyMass(), Map(5)]


@pytest.mark.usefixtures("kernel_alone")
@pytest.mark.parametrize("far", [100.0, 1e4, 1e6])
@pytest.mark.parametrize("mask", [None, Causal(), Window(30, 2)])
def test_scores_far_from_0_give_the_same_weights(isa: str, far: float, mask: Mask | None) -> None:
    """Scores far + 0 .. 6 in whole numbers, which float32 holds: nothing changes but the log-sum-exp. (The
    baseline of x86-64 has no fused product, and rounds them where it makes them powers of two.)"""
    places = torch.arange(150)
    q = torch.stack([torch.ones(150), torch.ones(150)], -1).expand(1, 2, 150, 2)
    k = torch.stack([(places * 37 % 151 % 7).float(), torch.full((150,), far)], -1).expand(1, 2, 150, 2)
    _, seen = attention(q, k, k, mask=mask, scale=1.0, observe=EVERY, kernel="native")
    exact = measure(problem(q.double(), k.double(), k.double(), mask=mask, scale=1.0), EVERY, kernel="tiled")
    # Of equal weights any may be listed: their values are compared.
    values = [one for one in EVERY if not isinstance(one, TopKeys)]
    rtol = 5e-6 + (2e-7 * far if isa == "baseline" else 0)
    close(seen, exact, values, rtol=rtol, atol=1e-7)
    torch.testing.assert_close(seen.top_keys.weights.double(), exact.top_keys.weights, rtol=rtol, atol=1e-7)


def test_scores_near_the_end_of_float32() -> None:
    """Their products can't be made in float32 once more: what keys receive is measured block by block."""
    q, k, v = drawn()
    q, k = q[..., :1], k[..., :1] * 3e31
    observers = [Entropy(), KeyMass(), Map(3), MaxWeight()]
    _, seen = attention(q, k, v, observe=observers, kernel="native")
    exact = measure(problem(q.double(), k.double(), v.double()), observers)
    close(seen, exact, observers, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("kernel_alone")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("q_len", [3, 200])
def test_spread_of_narrow_and_wide_rows(isa: str, dtype: torch.dtype, q_len: int) -> None:
    """A peak of one key or three beside which all else has from nothing to most of the weight, at either end
    of many keys and in the middle: centres move, and between pieces where few rows share many keys."""
    k_len, heads = 4003, 12
    peak = torch.tensor([0, 1, 2001, 4001, 4002, 15]).repeat(2)
    high = torch.tensor([0.0] * 6 + [40.0] * 6)
    k = torch.zeros(1, heads, k_len, 2)
    k[0, :, :, 0] = (torch.arange(k_len) % 5).float() / 4
    for head in range(heads):
        k[0, head, max(0, peak[head] - 1) : peak[head] + 2, 1] = high[head]
        k[0, head, peak[head], 1] += 4.0
    q = torch.ones(1, heads, q_len, 2)
    q[..., 1] = torch.linspace(0.0, 1.0, q_len)
    q, k = q.to(dtype), k.to(dtype)
    observers = [Spread(), Distance(), Entropy()]
    _, seen = attention(q, k, k, scale=1.0, observe=observers, kernel="native")
    exact = measure(problem(q.double(), k.double(), k.double(), scale=1.0), observers)
    near = exact.spread.min()
    assert near < 1 < 1e6 < exact.spread.max()
    close(seen, exact, observers, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [(110, 130), (5, 3000)])
@pytest.mark.parametrize("name", ["none", "dead rows", "documents"])
def test_bits_do_not_depend_on_threads(isa: str, sizes: tuple[int, int], name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    q_len, k_len = sizes
    q, k, v = (torch.randn(2, 4, n, 16, generator=generator) for n in (q_len, k_len, k_len))
    mask = Documents(torch.arange(k_len) // 37) & Causal() if name == "documents" else MASKS[name]
    observers = [one for one in EVERY if not isinstance(one, Mass)] + [Mass(range(0, k_len, 3)), TopKeys(11)]
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            _, seen = attention(q, k, v, mask=mask, observe=observers, kernel="native")
            found.append([x for one in observers for x in flat(seen[one])])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_what_is_masked_shows_in_no_statistic() -> None:
    """NaN and infinities in masked keys and values, and rows that may attend to nothing."""
    q, k, v = drawn()
    mask = KeyLengths([0, 90]) & Causal()
    observers = [one for one in OWN if one.name != "top_keys[70]"]
    clean = attention(q, k, v, mask=mask, observe=observers, kernel="native")
    k[0], v[0] = float("nan"), float("inf")
    k[1, :, 90:], v[1, :, 90:] = float("inf"), float("nan")
    dirty = attention(q, k, v, mask=mask, observe=observers, kernel="native")
    assert torch.equal(clean[0], dirty[0])
    for one in observers:
        for a, b in zip(flat(clean[1][one]), flat(dirty[1][one]), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
            assert one.name == "log_sum_exp" or not a[0].any() or (a[0] == -1).any()
    assert (clean[1].spread[0] == 0).all()
