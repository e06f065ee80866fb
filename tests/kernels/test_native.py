"""The compiled kernel against the specification, with every instruction set and number of threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given
from kernel_cases import Case, assert_same, cases, examples, solve_with
from native_sets import SETS

from headwise.attention import attention, explain, problem
from headwise.kernels import KERNELS
from headwise.kernels.native_build import build, native
from headwise.kernels.reference import Reference
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, Window
from headwise.positions import ALiBi

pytestmark = [
    pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built"),
    pytest.mark.usefixtures("native_as_it_was"),
]

REFERENCE = Reference()
NATIVE = next(kernel for kernel in KERNELS if kernel.name == "native")
F32, BF16 = torch.float32, torch.bfloat16
# Roundings of the type itself, and for bfloat16 of every product's terms.
NEAR = {F32: {"rtol": 3e-4, "atol": 3e-5}, BF16: {"rtol": 4e-2, "atol": 4e-2}}


def compare(case: Case, dtype: torch.dtype, *, refusable: bool = False) -> None:
    rounded = case.to(dtype)
    given, exact = rounded.problem(), rounded.to(torch.float64).problem()
    reasons = NATIVE.supports(given.flatten())
    if refusable:
        assume(not reasons)
    assert not reasons
    want = solve_with(REFERENCE, exact, rounded=dtype)
    got = solve_with(NATIVE, given)
    wide = replace(
        got, out=got.out.double(), lse=got.lse.double(), grads=tuple(g.double() for g in got.grads)
    )
    assert_same(wide, want, **NEAR[dtype])


@examples(60)
@given(cases())
def test_float32_gives_what_the_reference_gives(case: Case) -> None:
    """out, lse and every gradient, over all masks, biases, strides, sizes, positions and options."""
    compare(case, F32, refusable=True)


@examples(40)
@given(cases())
def test_bfloat16_gives_what_the_reference_gives(case: Case) -> None:
    compare(case, BF16, refusable=True)


MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": Causal(),
    "window": Window(5, 0),
    "lengths": Causal() & Window(130, 0) & KeyLengths([140, 1]),
    "documents": Documents(torch.arange(600) // 37) & Causal(),
    "prefix": Causal() | Prefix(66),
    "pairs": Allow(torch.arange(160 * 160).view(160, 160) % 7 > 2),
    "rows": Allow((torch.arange(160) % 3 > 0)[:, None]),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("mask", list(MASKS))
def test_every_instruction_set_gives_what_the_reference_gives(
    name: str, dtype: torch.dtype, mask: str
) -> None:
    """Several tiles of queries and keys, ends that fill none of them, grouped heads, and d_v of its own."""
    assert native.use_isa(name)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, heads, 160, width, generator=generator, dtype=torch.float64)
        for heads, width in ((4, 20), (2, 20), (2, 33))
    )
    compare(Case(q, k, v, {"mask": MASKS[mask]}), dtype)
    bias = torch.randn(4, 160, 160, generator=generator, dtype=torch.float64)
    options = {"dropout": 0.2, "softcap": 3.0, "sinks": torch.ones(4, dtype=torch.float64), "bias": bias}
    compare(Case(q, k, v, {"mask": MASKS[mask], **options}), dtype)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("options", [{}, {"mask": Causal()}, {"dropout": 0.3, "sinks": torch.zeros(6)}])
def test_results_do_not_depend_on_the_number_of_threads(dtype: torch.dtype, options: dict) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(1, heads, 150, 24, generator=generator).to(dtype).requires_grad_() for heads in (6, 2, 2)
    )
    found = []
    for threads in (1, 2, 3, 7):
        torch.set_num_threads(threads)
        out = attention(q, k, v, kernel="native", generator=torch.Generator().manual_seed(3), **options)
        found.append((out, *torch.autograd.grad(out.float().square().sum(), (q, k, v))))
    for other in found[1:]:
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(other, found[0], strict=True))


def test_masks_and_biases_that_would_take_a_matrix_are_refused_with_the_reason() -> None:
    one = torch.zeros(())
    q, k = one.expand(1, 2, 4000, 8), one.expand(1, 2, 4000, 8)
    for options, says in (
        ({"mask": ~Window(3, 3)}, "its keys are no range, and its matrix of q_len x k_len = 4000 x 4000"),
        (
            {"mask": Documents(torch.zeros(4000).long()) & Documents(torch.ones(4000).long())},
            "2 different sets",
        ),
        ({"mask": Causal(), "k_positions": torch.arange(4000)}, "positions that are given"),
        ({"mask": (Causal() | Prefix(3)) & Window(5, 0)}, "two ranges of keys"),
        ({"bias": ALiBi.for_heads(2)}, "bias ALiBi: it takes numbers in a tensor"),
    ):
        (reason,) = explain(q, k, k, **options).refusals["native"]
        assert says in reason
    double = torch.zeros(1, 2, 4, 8, dtype=torch.float64)
    assert explain(double, double, double).refusals["native"] == (
        "dtype torch.float64 is not float32 or bfloat16",
    )


def test_masks_over_given_positions_of_queries_are_ranges() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, n, 16) for n in (1100, 2000, 2000))
    at = torch.randint(0, 2500, (2, 1100))
    mask = Causal() & Window(30, 5) & KeyLengths([1999, 700])
    assert NATIVE.supports(problem(q, k, v, mask=mask, q_positions=at)) == ()
    got, want = (attention(q, k, v, mask=mask, q_positions=at, kernel=name) for name in ("native", "tiled"))
    torch.testing.assert_close(got, want)


def test_what_the_build_says() -> None:
    built = build()
    assert built is not None
    assert built.used in [name for name, here in built.sets if here]
    assert "baseline" in dict(built.sets)
    assert built.compiler
    forced = replace(built, forced=built.used)
    assert "asks for it" in forced.why()
    assert "this build doesn't have" in str(replace(built, forced="sse9").wrong())
    assert not native.use_isa("sse9")
