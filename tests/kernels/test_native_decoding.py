"""Few queries over many keys, as when a text is written: a way of its own through the compiled kernel."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from native_sets import SETS
from torch import Tensor

from headwise.attention import attention, problem
from headwise.kernels.native_build import native
from headwise.kernels.native_call import forward
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Window
from headwise.observers import Entropy, LogSumExp, MaxWeight, TopKeys, Weights

pytestmark = [
    pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built"),
    pytest.mark.usefixtures("native_as_it_was"),
]

F32, BF16 = torch.float32, torch.bfloat16
NEAR = {F32: 3e-6, BF16: 1e-2}  # of the largest number


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = F32, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def check(q: Tensor, k: Tensor, v: Tensor, near: float | None = None, **options: Any) -> Tensor:
    """Output and log-sum-exp are those of the formula in float64."""
    out, lse, _ = forward(problem(q, k, v, **options).flatten())
    sinks = options.pop("sinks", None)
    if sinks is not None:
        options["sinks"] = sinks.double()
    wide = q.double(), k.double(), v.double()
    want, seen = attention(*wide, kernel="reference", observe=[Weights()], **options)
    near = NEAR[q.dtype] if near is None else near
    largest = max(float(want.nan_to_num(0).abs().max()), 1e-30) if want.numel() else 1.0
    torch.testing.assert_close(out.double(), want, rtol=0, atol=near * largest, equal_nan=True)
    # exp(lse) weighs each key, so that the weights of the float64 formula must come out.
    groups = q.shape[1] // k.shape[1]
    scores = wide[0] @ wide[1].repeat_interleave(groups, 1).mT * q.shape[-1] ** -0.5
    weights = (scores - lse.unsqueeze(-1)).exp()
    live = (seen.weights > 0) & weights.isfinite()
    torch.testing.assert_close(weights[live], seen.weights[live], rtol=1e-4, atol=1e-7)
    return out


# heads, kv_heads, q_len: 1 to 8 rows share a key, and 9
ROWS = [(3, 3, 1), (2, 1, 1), (3, 1, 1), (8, 2, 1), (5, 1, 1), (7, 1, 1), (8, 1, 1), (2, 1, 4), (9, 1, 1)]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("rows", ROWS)
def test_few_rows_give_what_the_formula_gives(
    name: str, dtype: torch.dtype, rows: tuple[int, int, int]
) -> None:
    """Lengths about the ends of tiles, of splits (from 1024 on) and of sums that are put aside (4096)."""
    assert native.use_isa(name)
    heads, kv_heads, q_len = rows
    for k_len in (1, 15, 16, 17, 63, 64, 65, 129, 1100, 4200):
        sizes = (2, heads, q_len, 32), (2, kv_heads, k_len, 32), (2, kv_heads, k_len, 48)
        q, k, v = drawn(*sizes, dtype=dtype)
        check(q, k, v)
        check(q, k, v, mask=Causal(), sinks=torch.linspace(-1, 2, heads))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("widths", [(4, 4), (16, 96), (20, 16), (64, 64), (80, 33), (160, 128)])
def test_widths_that_fill_vectors_and_that_do_not(name: str, widths: tuple[int, int]) -> None:
    assert native.use_isa(name)
    d_k, d_v = widths
    for dtype in (F32, BF16):
        check(*drawn((1, 4, 1, d_k), (1, 2, 77, d_k), (1, 2, 77, d_v), dtype=dtype))


MASKS: dict[str, Mask] = {
    "lengths": KeyLengths([1100, 0]),  # one of them has no key
    "some": KeyLengths([1, 577]),
    "window": Causal() & Window(70, 0),
    "far window": Causal() & Window(1090, 0) & KeyLengths([1100, 40]),
    "pairs": Allow(torch.arange(3 * 1100).view(3, 1100) % 7 > 2),
    "documents": Documents(torch.arange(1100) // 41),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("mask", list(MASKS))
def test_masks_hide_what_they_hide(name: str, mask: str) -> None:
    assert native.use_isa(name)
    q, k, v = drawn((2, 4, 3, 64), (2, 2, 1100, 64), (2, 2, 1100, 64))
    check(q, k, v, mask=MASKS[mask])


def placed(x: Tensor, way: str) -> Tensor:
    """The numbers of x [B, H, n, d] at another place of memory, with NaN around them."""
    batch, heads, length, width = x.shape
    views = {
        "first keys": lambda: room(batch, heads, length + 9, width)[:, :, :length],
        "later keys": lambda: room(batch, heads, 5 + length, width)[:, :, 5:],
        "heads between": lambda: room(batch, length, heads, width + 3)[..., 3:].transpose(1, 2),
        "keys first": lambda: room(length, batch, heads, width).permute(1, 2, 0, 3),
        "off alignment": lambda: room(1 + x.numel())[1:].view(x.shape),
    }

    def room(*sizes: int) -> Tensor:
        return torch.full(sizes, math.nan, dtype=x.dtype)

    return views[way]().copy_(x)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("way", ["first keys", "later keys", "heads between", "keys first", "off alignment"])
def test_keys_are_read_where_they_lie(name: str, dtype: torch.dtype, way: str) -> None:
    """As views of a cache's room are: no copy, no number of what lies around, and the same bits."""
    assert native.use_isa(name)
    for length in (1, 70, 1100):
        q, k, v = drawn((2, 4, 1, 64), (2, 2, length, 64), (2, 2, length, 64), dtype=dtype)
        want = check(q, k, v)
        for mine in ((placed(q, way), k, v), (q, placed(k, way), v), (q, k, placed(v, way))):
            assert torch.equal(forward(problem(*mine).flatten())[0], want)
    one_k, one_v = k[:1].expand(2, -1, -1, -1), v[:, :1].expand(-1, 2, -1, -1)
    check(q, one_k, one_v)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("length", [40, 1100])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_masked_cannot_leak(name: str, length: int, bad: float) -> None:
    assert native.use_isa(name)
    q, k, v = drawn((2, 4, 1, 64), (2, 2, length, 64), (2, 2, length, 64))
    hidden = torch.arange(length) % 5 == 2
    for mask, where in ((Allow(~hidden), hidden), (KeyLengths(length - 7), slice(length - 7, None))):
        clean = check(q, k, v, mask=mask)
        for tensors in ((k,), (v,), (k, v)):
            spoilt = [x.clone() for x in (k, v)]
            for x in spoilt:
                if any(x.shape == y.shape and torch.equal(x, y) for y in tensors):
                    x[:, :, where] = bad
            out, lse, fine = forward(problem(q, *spoilt, mask=mask).flatten())
            assert fine
            torch.testing.assert_close(out, clean, rtol=1e-5, atol=1e-6)
            assert lse.isfinite().all()


@pytest.mark.parametrize("name", SETS)
def test_what_is_not_finite_has_its_effect(name: str) -> None:
    """NaN that a query attends to is its result; scores beyond the largest float are computed with care."""
    assert native.use_isa(name)
    q, k, v = drawn((1, 4, 1, 64), (1, 2, 70, 64), (1, 2, 70, 64))
    k[:, 1, 9, 3] = math.nan
    assert not forward(problem(q, k, v).flatten())[2]  # the rest holds anything, and another kernel is asked
    out, seen = attention(q, k, v, kernel="native", observe=[LogSumExp()])
    assert out[:, 2:].isnan().all()
    assert seen.log_sum_exp[:, 2:].isnan().all()
    torch.testing.assert_close(out[:, :2], forward(problem(q[:, :2], k[:, :1], v[:, :1]).flatten())[0])
    q, k = torch.full((1, 1, 1, 64), 3e18), torch.full((1, 1, 70, 64), 3e18)  # q . k is no float
    out, _, _ = forward(problem(q, k, v[:, :1]).flatten())
    torch.testing.assert_close(out, v[:, :1].mean(2, keepdim=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_threads_splits_and_the_form_of_a_mask_change_no_bit(name: str, dtype: torch.dtype) -> None:
    assert native.use_isa(name)
    q, k, v = drawn((1, 4, 1, 64), (1, 2, 5000, 64), (1, 2, 5000, 64), dtype=dtype)
    there = torch.arange(5000) < 3333
    forms = (KeyLengths(3333), KeyLengths(torch.tensor([3333])), Allow(there), Causal() & KeyLengths(3333))
    found = []
    for threads in (1, 2, 3, 7):
        torch.set_num_threads(threads)
        found.extend(forward(problem(q, k, v, mask=mask).flatten())[:2] for mask in forms)
    assert all(torch.equal(out, found[0][0]) and torch.equal(lse, found[0][1]) for out, lse in found)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("length", [50, 2500])
def test_observing_changes_no_bit(name: str, length: int) -> None:
    assert native.use_isa(name)
    q, k, v = drawn((2, 4, 2, 64), (2, 2, length, 64), (2, 2, length, 64))
    options: dict[str, Any] = {"mask": Causal() & Window(1500, 0), "kernel": "native"}
    out, seen = attention(q, k, v, observe=[Entropy(), MaxWeight(), TopKeys(3), Weights()], **options)
    assert torch.equal(out, attention(q, k, v, **options))
    weights = seen.weights.double()
    entropy = -(weights * weights.clamp(min=1e-300).log()).sum(-1)
    torch.testing.assert_close(seen.entropy.double(), entropy, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen.max_weight.value.double(), weights.amax(-1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("keys", [1000, 16_384, 131_072, 1_048_576])
def test_sums_of_very_many_equal_weights(name: str, keys: int) -> None:
    """One by one they would drift: each addition is rounded in the same direction."""
    assert native.use_isa(name)
    q = torch.full((1, 1, 1, 64), 0.5)
    k = torch.zeros(1, 1, keys, 64)
    k[:, :, 0] = -0.37 / 16
    v = torch.full((1, 1, 1, 64), 0.7).expand(1, 1, keys, 64)
    out, lse, fine = forward(problem(q, k, v, scale=1.0).flatten())
    assert fine
    exact = math.log(keys - 1 + math.exp(-0.74))
    assert abs(float(lse) - exact) < 1e-6 * exact
    assert float((out.double() - v[:, :, :1].double()).abs().max()) < 2e-6
