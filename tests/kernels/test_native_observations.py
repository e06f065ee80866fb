"""What the compiled kernel observes in its own pass is what the observers say of the formula."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import torch
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
OWN += [Map(7), Map((200, 3))]
OTHERS = [Weights(rows=[3, 0]), Mass([0, 5]), Spread(), Entropy(heads=[1]), KeyMass(rows=[-1])]
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


@pytest.mark.parametrize("k_len", [1, 130])
@pytest.mark.parametrize("size", [1.0, 30.0, 3e4])
def test_large_scores_lose_nothing(size: float, k_len: int) -> None:
    """A weight made as exp(score - lse) is off by the rounding of lse: by 0.005 at 1e4."""
    q, k, v = drawn()
    _, seen = attention(
        q,
        k[:, :, :k_len] * size,
        v[:, :, :k_len],
        observe=[Entropy(), MaxWeight(), KeyMass()],
        kernel="native",
    )
    assert (seen.entropy >= 0).all()
    assert (seen.max_weight.value <= 1 + 1e-6).all()
    torch.testing.assert_close(seen.key_mass.sum(-1), torch.full((2, 4), 110.0), rtol=5e-6, atol=0.0)
    if k_len == 1:
        torch.testing.assert_close(seen.entropy, torch.zeros(2, 4, 110), rtol=0.0, atol=5e-6)
