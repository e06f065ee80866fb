"""Every kernel against the specification, and the specification against the formula."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from dense_bias import dense_bias
from hypothesis import given
from kernel_cases import Case, assert_same, cases, examples, solve_with, willing
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from headwise.kernels import KERNELS, Problem
from headwise.kernels.dropout import keep
from headwise.kernels.flex import block_mask, flex_solve, mask_function, untranslatable
from headwise.kernels.reference import Reference
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, Window
from headwise.positions import ALiBi

REFERENCE = Reference()
MANY, SOME = examples(120), examples(40)


@MANY
@given(cases())
def test_every_kernel_gives_what_the_reference_gives(case: Case) -> None:
    """out, lse, and the gradients of q, k, v, sinks and the bias, from gradients of out and of lse."""
    given = case.problem()
    want = solve_with(REFERENCE, given)
    for kernel in willing(given):
        assert_same(solve_with(kernel, given), want)


@SOME
@given(cases(plain=True, lengths=(0, 1, 5, 64, 65)))
def test_plain_calls_too(case: Case) -> None:
    """Without dropout, softcap and sinks, more kernels take the call."""
    given = case.problem()
    want = solve_with(REFERENCE, given)
    for kernel in willing(given):
        assert_same(solve_with(kernel, given), want)


LONG = (63, 64, 65, 127, 128, 129, 600)
LONG_MASKS: dict[str, Callable[[int], Mask | None]] = {
    "none": lambda n: None,
    "causal": lambda n: Causal(),
    "window": lambda n: Window(5, 0),
    "band": lambda n: Window(3, 70),
    "causal window of lengths": lambda n: Causal() & Window(130, 0) & KeyLengths(torch.tensor([n, 1])),
    "documents": lambda n: Documents(torch.arange(n + 600) // 77) & Causal(),
    "prefix": lambda n: (Causal() | Prefix(min(n, 66))) & ~Window(1, 1),
    "scattered": lambda n: Allow(torch.arange(n) % 200 < 2),  # whole tiles are empty between the keys
}


@pytest.mark.parametrize(("q_len", "k_len"), [*((n, n) for n in LONG), (65, 600), (129, 63)])
@pytest.mark.parametrize("name", list(LONG_MASKS))
def test_lengths_at_the_ends_of_tiles(name: str, q_len: int, k_len: int) -> None:
    """pytorch#127055, #178251, #125674, #196678: NaN in the backward pass of blocks that are masked
    wholly, at some lengths only. Seven lengths, eight patterns of empty blocks, each kernel."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, n, 3, dtype=torch.float64) for n in (q_len, k_len, k_len))
    mask = LONG_MASKS[name](k_len)
    for options in ({}, {"bias": ALiBi.for_heads(2, dtype=torch.float64), "dropout": 0.2}):
        given = Case(q, k, v, {"mask": mask, **options}).problem()
        want = solve_with(REFERENCE, given)
        assert all(grad.isfinite().all() for grad in want.grads)
        for kernel in willing(given):
            assert_same(solve_with(kernel, given), want)


# The formula, element by element, in Python's floats


def formula(given: Problem) -> tuple[Tensor, Tensor]:
    """out and lse by loops over batch entries, heads, queries and keys."""
    flat = given.flatten()
    count, heads, q_len, _ = flat.q.shape
    k_len, d_v = flat.v.shape[-2:]
    out = torch.zeros(count, heads, q_len, d_v, dtype=torch.float64)
    lse = torch.full((count, heads, q_len), -math.inf, dtype=torch.float64)
    allow = None if flat.mask is None else flat.mask.dense(flat.frame)
    bias = None if flat.bias is None else dense_bias(flat.bias, flat)
    kept = keep(flat, slice(0, q_len), slice(0, k_len)) if flat.dropout else None
    group = heads // flat.k.shape[1]
    for b in range(count):
        for h in range(heads):
            for i in range(q_len):
                scores = {}
                for j in range(k_len):
                    if allow is not None and not allow[b, h, i, j]:
                        continue
                    s = flat.scale * float(flat.q[b, h, i] @ flat.k[b, h // group, j])
                    if flat.softcap is not None:
                        s = flat.softcap * math.tanh(s / flat.softcap)
                    if bias is not None:
                        s += float(bias[b, h, i, j])
                    scores[j] = s
                total = sum(math.exp(s) for s in scores.values())
                if flat.sinks is not None:
                    total += math.exp(flat.sinks[h])
                if total == 0:
                    continue
                lse[b, h, i] = math.log(total)
                for j, s in scores.items():
                    weight = math.exp(s) / total
                    if kept is not None:
                        weight = weight / (1 - flat.dropout) if kept[b, h, i, j] else 0.0
                    out[b, h, i] += weight * flat.v[b, h // group, j]
    return out, lse


@SOME
@given(cases(lengths=(0, 1, 2, 3, 5, 7)))
def test_the_reference_is_the_formula(case: Case) -> None:
    given = case.problem()
    out, lse = REFERENCE.solve(given.flatten())
    want_out, want_lse = formula(given)
    torch.testing.assert_close(out, want_out, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(lse, want_lse, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_reference_is_softmax_as_torch_writes_it(batch: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(*batch, 3, n, 5, dtype=torch.float64) for n in (7, 11, 11))
    out, lse = REFERENCE.solve(Case(q, k, v).problem().flatten())
    scores = q @ k.mT / 5**0.5
    torch.testing.assert_close(out.reshape(q.shape), scores.softmax(-1) @ v)
    torch.testing.assert_close(lse.reshape(q.shape[:-1]), scores.logsumexp(-1))


# flex_attention isn't run on a CPU: its translation is


@SOME
@given(cases(lengths=(1, 3, 5, 13, 127, 129)))
def test_masks_are_said_to_flex_attention_as_they_are(case: Case) -> None:
    flat = case.problem().flatten()
    if flat.mask is None or flat.q.numel() == 0 or flat.k.numel() == 0:
        return
    if any("no translation" in reason for reason in untranslatable(flat)):
        with pytest.raises(NotImplementedError, match="no translation"):
            mask_function(flat.mask, flat.frame)
        return
    says = mask_function(flat.mask, flat.frame)
    frame = flat.frame
    places = [torch.arange(n) for n in (frame.batch[0], frame.heads, frame.q_len, frame.k_len)]
    grid = torch.meshgrid(*places, indexing="ij")
    said = torch.vmap(says)(*(axis.reshape(-1) for axis in grid)).reshape(grid[0].shape)
    dense = flat.mask.dense(frame)
    assert torch.equal(said, dense)
    blocks = block_mask(flat.mask, frame)
    assert torch.equal(_opened(blocks.to_dense().bool(), blocks.BLOCK_SIZE, frame) & dense, dense)
    full = torch.zeros_like(blocks.to_dense(), dtype=torch.bool)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in full.shape[:3])).reshape(-1, 3):
        b, h, i = place.tolist()
        number = blocks.full_kv_num_blocks[b, h, i]
        full[b, h, i, blocks.full_kv_indices[b, h, i, :number].long()] = True
    assert dense[_opened(full, blocks.BLOCK_SIZE, frame)].all()


def _opened(blocks: Tensor, size: tuple[int, int], frame: object) -> Tensor:
    """[B, H, q_len, k_len] from one bool per block."""
    whole = blocks.repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)
    return whole[..., : frame.q_len, : frame.k_len]  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "options",
    [
        {
            "mask": Causal() & KeyLengths(torch.tensor([5, 0])),
            "sinks": torch.tensor([0.5, -1.0, 2.0, -math.inf]),
        },
        {
            "mask": Documents(torch.tensor([0, 0, 1, 1, 1, 2, 2])) | Allow(torch.eye(5, 7).bool()),
            "softcap": 1.5,
        },
        {"scale": 0.3, "align": "start"},
    ],
)
def test_calls_are_said_to_flex_attention_as_they_are(options: dict[str, object]) -> None:
    """Its plain Python form, which compiled kernels are generated from."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, n, 3) for heads, n in ((4, 5), (2, 7), (2, 7)))
    flat = Case(q, k, v, options).problem()
    assert not untranslatable(flat)
    out, lse = flex_solve(flat, flex_attention)
    want_out, want_lse = REFERENCE.solve(flat)
    torch.testing.assert_close(lse, want_lse, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out, want_out, rtol=1e-4, atol=1e-5)


def test_flex_says_what_it_cannot_translate() -> None:
    q = torch.randn(1, 2, 3, 5)
    cross = Documents(torch.tensor([0, 0, 1]), query_ids=torch.tensor([0, 1, 1]))
    for options, words in [
        ({"mask": cross}, "no translation"),
        ({"dropout": 0.5}, "dropout"),
        ({"bias": ALiBi.for_heads(2)}, "bias"),
    ]:
        assert any(words in reason for reason in untranslatable(Case(q, q, q, options).problem())), words
    assert any("float64" in r for r in untranslatable(Case(q.double(), q.double(), q.double()).problem()))
    assert any("empty" in r for r in untranslatable(Case(q[:0], q[:0], q[:0]).problem()))


# Precision


def _error(got: Tensor, want: Tensor) -> float:
    return float((got.detach().double() - want.detach()).abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [13, 129, 600])
def test_rounding_errors_are_those_of_torch(dtype: torch.dtype, causal: bool, length: int) -> None:
    """Against float64 of the same inputs, out and every gradient miss by no more than twice what
    scaled_dot_product_attention misses by, and a last place of the largest number: the largest of a few
    thousand errors is a matter of chance."""
    torch.manual_seed(0)
    q, k, v, d_out = (torch.randn(2, 3, length, 17).to(dtype) for _ in range(4))
    exact = [t.double().requires_grad_() for t in (q, k, v)]
    want = F.scaled_dot_product_attention(*exact, is_causal=causal)
    want_grads = torch.autograd.grad(want, exact, d_out.double())
    theirs = [t.clone().requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*theirs, is_causal=causal)
    allowed = [_error(out, want)]
    allowed += [
        _error(g, w) for g, w in zip(torch.autograd.grad(out, theirs, d_out), want_grads, strict=True)
    ]
    places = [torch.finfo(dtype).eps * float(w.detach().abs().max()) for w in (want, *want_grads)]
    given = Case(q, k, v, {"mask": Causal() if causal else None}).problem()
    for kernel in willing(given):
        ours = tuple(t.clone().requires_grad_() for t in (q, k, v))
        out, lse = kernel.solve(given.with_differentiable(ours, has_sinks=False))
        assert out.dtype == dtype
        assert lse.dtype == torch.float32
        grads = torch.autograd.grad(out, ours, d_out)
        errors = [_error(out, want), *(_error(g, w) for g, w in zip(grads, want_grads, strict=True))]
        for name, error, limit, place in zip(("out", "dq", "dk", "dv"), errors, allowed, places, strict=True):
            assert error <= 2 * limit + place, (kernel.name, name, error, limit)
        want_lse = (exact[0] @ exact[1].mT / 17**0.5).detach()
        if causal:
            want_lse = want_lse.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        # torch's fused operation has a faster, coarser exponential for 16-bit inputs.
        assert _error(lse, want_lse.logsumexp(-1)) < (1e-5 if dtype == torch.float32 else 1e-4), kernel.name


@SOME
@given(cases(lengths=(1, 3, 7, 65)))
def test_float32_of_any_call_is_near_float64(case: Case) -> None:
    single = case.to(torch.float32)
    double = single.to(torch.float64)
    given = single.problem()
    want = solve_with(REFERENCE, double.problem())
    for kernel in willing(given):
        got = solve_with(kernel, given)
        for name, mine in got.parts().items():
            theirs = want.parts()[name]
            finite = theirs[theirs.isfinite()].abs()
            size = float(finite.max()) if finite.numel() else 0.0  # sums of large numbers may cancel
            torch.testing.assert_close(
                mine.double(),
                theirs,
                rtol=1e-3,
                atol=2e-4 * (1 + size),
                msg=lambda m, n=name, k=kernel: f"{k.name} {n}: {m}",
            )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_learned_bias_in_half_precision_sums_its_gradient_in_float32(dtype: torch.dtype) -> None:
    """600 rows add to one number: summed in bfloat16 it would lose everything below a 256th of itself."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, 600, 3) for _ in range(3))
    bias = torch.randn(2, 1, 600).to(dtype)
    want = solve_with(REFERENCE, Case(q, k, v, {"bias": bias}).to(torch.float64).problem())
    for kernel in willing(Case(q, k, v, {"bias": bias}).problem()):
        got = solve_with(kernel, Case(q, k, v, {"bias": bias}).problem())
        error = _error(got.parts()["dbias0"], want.parts()["dbias0"])
        assert error <= torch.finfo(dtype).eps * float(want.parts()["dbias0"].abs().max()), kernel.name


def test_kernels_have_names_of_their_own() -> None:
    names = [kernel.name for kernel in KERNELS]
    assert len(set(names)) == len(names)
    assert {"torch", "flex", "tiled", "reference"} <= set(names)
