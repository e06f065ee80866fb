"""NaN and Inf: what is masked cannot leak, what is live propagates and stays in its rows, and a query
that may attend to nothing gives 0 (rules 2 and 3 of the contract)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from dense_bias import dense_bias
from hypothesis import assume, given
from hypothesis import strategies as st
from kernel_cases import Case, Result, cases, examples, solve_with, willing
from torch import Tensor

from headwise.kernels import KERNELS, Kernel, Problem
from headwise.masks import Allow, Causal, Documents, KeyLengths, ValidKeys, Window

NAN, INF = float("nan"), float("inf")
GARBAGE = st.sampled_from([NAN, INF, -INF, 1.7e308])
KERNEL_NAMES = [kernel.name for kernel in KERNELS]


def whole(case: Case) -> Case:
    """The same call over dense tensors, so that one key can be spoiled and no other."""
    batch = case.q.shape[:-3]
    k, v = (t.expand(*batch, *t.shape[-3:]).clone() for t in (case.k, case.v))
    return replace(case, q=case.q.clone(), k=k, v=v)


def allowed(flat: Problem) -> Tensor:
    """[B, H, q_len, k_len]: what neither the mask nor a bias of -inf hides."""
    frame = flat.frame
    full = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
    allow = torch.ones(full, dtype=torch.bool) if flat.mask is None else flat.mask.dense(frame)
    return allow if flat.bias is None else allow & (dense_bias(flat.bias, flat) > -INF)


def seen_by_group(flat: Problem, allow: Tensor) -> Tensor:
    """[B, kv_heads, q_len, k_len]: whether any query head of the group may attend."""
    return allow.unflatten(1, (flat.kv_heads, flat.groups)).any(2)


def spoil(tensor: Tensor, keys: Tensor, value: float) -> Tensor:
    """`value` written into every number of the keys [B, kv_heads, k_len] of [*batch, kv_heads, k_len, d]."""
    return torch.where(keys.reshape(tensor.shape[:-1]).unsqueeze(-1), value, tensor)


def assert_close(got: Result, want: Result) -> None:
    for name, mine in got.parts().items():
        torch.testing.assert_close(
            mine, want.parts()[name], rtol=1e-9, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}"
        )


@examples(40)
@given(cases(lengths=(1, 2, 5, 13, 65)), GARBAGE, GARBAGE)
def test_what_nobody_may_attend_to_takes_no_part(case: Case, in_k: float, in_v: float) -> None:
    """pytorch#101967, keras#15390, tensorflow#45854: garbage in padding and in slots without a key."""
    case = whole(case)
    flat = case.problem().flatten()
    hidden = ~seen_by_group(flat, allowed(flat)).any(2)
    assume(bool(hidden.any()))
    zeros = replace(case, k=spoil(case.k, hidden, 0.0), v=spoil(case.v, hidden, 0.0)).problem()
    spoiled = replace(case, k=spoil(case.k, hidden, in_k), v=spoil(case.v, hidden, in_v)).problem()
    for kernel in willing(zeros):
        want, got = solve_with(kernel, zeros), solve_with(kernel, spoiled)
        assert_close(got, want)
        if kernel.name in ("reference", "tiled"):  # the same steps over the same numbers
            assert torch.equal(got.out, want.out)
            assert torch.equal(got.lse, want.lse)
        for name in ("dk", "dv"):
            grad = got.parts()[name]
            assert (grad[hidden.reshape(grad.shape[:-1])] == 0).all()


@examples(40)
@given(cases(lengths=(1, 2, 5, 13, 65)), GARBAGE, GARBAGE, st.integers(0, 2**31))
def test_rows_that_may_not_attend_to_it_know_nothing_of_it(
    case: Case, in_k: float, in_v: float, seed: int
) -> None:
    """Some keys are spoiled. Rows that see none of them give what they gave, and a loss over these rows
    alone has the gradients that it had: no 0 x NaN comes from the other rows."""
    case = whole(case)
    flat = case.problem().flatten()
    seen = seen_by_group(flat, allowed(flat))
    generator = torch.Generator().manual_seed(seed)
    keys = torch.rand(seen[:, :, 0].shape, generator=generator) < 0.2
    assume(bool(keys.any()))
    pairs = seen & keys.unsqueeze(2)
    clean = ~(allowed(flat) & keys.repeat_interleave(flat.groups, 1).unsqueeze(2)).any(-1)  # [B, H, q_len]
    zeros = replace(case, k=spoil(case.k, keys, 0.0), v=spoil(case.v, keys, 0.0)).problem()
    spoiled = replace(case, k=spoil(case.k, keys, in_k), v=spoil(case.v, keys, in_v)).problem()
    assert pairs.shape == seen.shape
    for kernel in willing(zeros):
        want, want_out, want_lse = of_rows(kernel, zeros, clean)
        got, out, lse = of_rows(kernel, spoiled, clean)
        torch.testing.assert_close(out[clean], want_out[clean], rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(lse[clean], want_lse[clean], rtol=1e-9, atol=1e-10)
        for name, mine, theirs in zip(("dq", "dk", "dv", "more", "more"), got, want, strict=False):
            torch.testing.assert_close(
                mine, theirs, rtol=1e-9, atol=1e-10, msg=lambda m, n=name, k=kernel.name: f"{k} {n}: {m}"
            )


def of_rows(kernel: Kernel, given: Problem, rows: Tensor) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Gradients of a loss over some rows [B, H, q_len] of out and lse, and out and lse."""
    tensors = tuple(t.detach().requires_grad_() for t in given.differentiable())
    flat = given.with_differentiable(tensors, has_sinks=given.sinks is not None).flatten()
    out, lse = kernel.solve(flat)
    generator = torch.Generator().manual_seed(11)
    d_out = torch.randn(out.shape, generator=generator, dtype=out.dtype) * rows.unsqueeze(-1)
    d_lse = torch.randn(lse.shape, generator=generator, dtype=lse.dtype) * rows
    grads = torch.autograd.grad([out, lse], tensors, [d_out, d_lse], materialize_grads=True)
    return grads, out.detach(), lse.detach()


@pytest.mark.parametrize("width", [3, 17, 65, 130])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_live_nan_propagates_and_only_there(kernel: str, bad: float, width: int) -> None:
    """No kernel hides NaN in a query (torch's fused operation gives 0 for a row of nothing but NaN over
    a few keys), nor spreads it."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = (torch.randn(2, 2, width, 3, dtype=torch.float64) for _ in range(3))
    given = Case(q, k, v, {"mask": Causal()}).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    at = width // 2
    with_q, with_k, with_v = q.clone(), k.clone(), v.clone()
    with_q[0, 1, at] = bad
    with_k[0, 1, at] = bad
    with_v[0, 1, at, 2] = bad
    want = solver.solve(given)[0]
    tainted = torch.zeros_like(want, dtype=torch.bool)
    for what, tensors in (("q", (with_q, k, v)), ("k", (q, with_k, v)), ("v", (q, k, with_v))):
        out, lse = solver.solve(Case(*tensors, {"mask": Causal()}).problem())
        tainted.zero_()
        if what == "q":
            tainted[0, 1, at] = True
        elif what == "k":
            tainted[0, 1, at:] = True
        else:
            tainted[0, 1, at:, 2] = True
        torch.testing.assert_close(out[~tainted], want[~tainted], rtol=1e-9, atol=1e-10)
        if what == "v":
            assert torch.equal(out[tainted], torch.full_like(out[tainted], bad)) or bad != bad
            assert lse.isfinite().all()
        if bad != bad:  # an Inf in q or k may be +-inf or NaN as a score, and -inf is weight 0
            assert out[tainted].isnan().all(), what


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_a_row_of_nan_poisons_no_gradient_of_the_others(kernel: str) -> None:
    """A NaN result is a constant: with 0 coming in from there, 0 goes out from there."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = (torch.randn(1, 2, 7, 3, dtype=torch.float64) for _ in range(3))
    for spoiled in range(3):
        tensors = [t.clone() for t in (q, k, v)]
        tensors[spoiled][:, :, 4] = NAN
        given = Case(*tensors, {"mask": Causal()}).problem()
        if solver.supports(given):
            pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
        early = torch.zeros(1, 2, 7, dtype=torch.bool)
        early[:, :, :4] = True
        got, _, _ = of_rows(solver, given, early)
        want, _, _ = of_rows(solver, Case(q, k, v, {"mask": Causal()}).problem(), early)
        for mine, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("coming_in", [0.0, 1.0])
@pytest.mark.parametrize("hidden", ["a key of a block", "whole blocks of keys"])
@pytest.mark.parametrize("spoiled", ["k", "v"])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_no_gradient_of_what_is_masked(kernel: str, spoiled: str, hidden: str, coming_in: float) -> None:
    """Also where the gradient that comes in is 0, so that no size of a product tells of the NaN."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    tensors = [torch.randn(1, 2, n, 16) for n in (40, 300, 300)]
    allow = torch.ones(40, 300, dtype=torch.bool)
    keys = slice(15, 16) if hidden == "a key of a block" else slice(128, 300)
    allow[:, keys] = False
    given = Case(*tensors, {"mask": Allow(allow)}).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    found = []
    for bad in (0.5, NAN):
        q, k, v = (t.clone() for t in tensors)
        (k if spoiled == "k" else v)[:, :, keys] = bad
        leaves = [t.requires_grad_() for t in (q, k, v)]
        out, _ = solver.solve(Case(q, k, v, {"mask": Allow(allow)}).problem().flatten())
        found.append(torch.autograd.grad(out, leaves, torch.full_like(out, coming_in)))
    for mine, theirs in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [name for name in KERNEL_NAMES if name != "reference"])
def test_nan_from_outside_stays_in_its_document(kernel: str) -> None:
    """A NaN gradient comes in at document 1: document 0 keeps its own. (The reference kernel is plain
    autograd, in which 0 x NaN is NaN; it is the one exception.)"""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    tensors = [torch.randn(1, 2, 11, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    ids = torch.tensor([0] * 5 + [1] * 6)
    given = Case(*tensors, {"mask": Documents(ids)}).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    out, _ = solver.solve(given)
    d_out = torch.randn_like(out)
    want = torch.autograd.grad(out, tensors, d_out, retain_graph=True)
    d_out[:, :, 7] = NAN
    for mine, theirs in zip(torch.autograd.grad(out, tensors, d_out), want, strict=True):
        torch.testing.assert_close(mine[:, :, :5], theirs[:, :, :5])
        assert mine[:, :, 5:].isnan().any()


# Rows that may attend to nothing


DEAD: dict[str, dict[str, Any]] = {
    "no keys": {"mask": KeyLengths(torch.tensor([0, 7]))},
    "more queries than keys": {"mask": Causal()},
    "padding as a document": {"mask": Documents(torch.tensor([-1, -1, -1, 0, 0, 1, 1, 1, 1, 1, 1]))},
    "a window beyond the keys": {"mask": Window(0, 2) & ~Window(2, 2)},
    "no pair": {"mask": Allow(torch.zeros(1, 1, dtype=torch.bool))},
    "empty slots": {"mask": ValidKeys(), "k_positions": torch.full((7,), -1)},
    "a bias of -inf": {"bias": torch.tensor([-INF, 0.0, 1.5, -INF, 0.0]).repeat(3)[:11].view(11, 1)},
}


@pytest.mark.parametrize("garbage", [0.0, NAN, INF])
@pytest.mark.parametrize("name", list(DEAD))
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_a_query_that_may_attend_to_nothing(kernel: str, name: str, garbage: float) -> None:
    """pytorch#103749, #110213, #103963: its meaning differs between versions and backends elsewhere. Here
    it is 0, with log-sum-exp -inf and a gradient of exactly 0, whatever the query holds."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = (torch.randn(2, 4, n, 3, dtype=torch.float64) for n in (11, 7, 7))
    flat = Case(q, k, v, DEAD[name]).problem()
    dead = ~allowed(flat).any(-1)
    assert dead.any()
    q = torch.where(dead.unsqueeze(-1), garbage, q) if garbage else q
    given = Case(q, k, v, DEAD[name]).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    got = solve_with(solver, given)
    assert (got.out[dead] == 0).all()
    assert (got.lse[dead] == -INF).all()
    assert (got.parts()["dq"][dead] == 0).all()
    assert got.out.isfinite().all()
    assert got.lse[~dead].isfinite().all()
    assert all(grad.isfinite().all() for grad in got.grads)
    # The other rows give, and send back, what they do without the dead ones.
    if dead.all():
        assert all((grad == 0).all() for grad in got.grads)
    else:
        want = solve_with(solver, Case(torch.where(dead.unsqueeze(-1), 0.5, q), k, v, DEAD[name]).problem())
        assert_close(got, want)


@pytest.mark.parametrize("sink", [0.5, -INF])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_a_dead_row_with_a_sink(kernel: str, sink: float) -> None:
    """All of its probability goes to the sink: out 0, lse = the sink; a sink of -inf is none."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = (torch.randn(1, 2, n, 3, dtype=torch.float64) for n in (5, 3, 3))
    given = Case(q, k, v, {"mask": Causal(), "sinks": torch.full((2,), sink, dtype=torch.float64)}).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    got = solve_with(solver, given)
    assert (got.out[:, :, :2] == 0).all()
    assert (got.lse[:, :, :2] == sink).all()
    assert all(grad.isfinite().all() for grad in got.grads)
    assert (got.parts()["dq"][:, :, :2] == 0).all()


@pytest.mark.parametrize("sink", [INF, float("nan")])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_a_sink_of_no_finite_value_breaks_its_head(kernel: str, sink: float) -> None:
    """As in any softmax: all rows of that head are NaN, dead ones too, and send nothing back."""
    torch.manual_seed(0)
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = (torch.randn(1, 2, n, 3, dtype=torch.float64) for n in (5, 3, 3))
    sinks = torch.tensor([0.5, sink], dtype=torch.float64)
    given = Case(q, k, v, {"mask": Causal(), "sinks": sinks}).problem()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    got = solve_with(solver, given)
    assert got.out[:, 0].isfinite().all()
    assert got.out[:, 1].isnan().all()
    assert got.lse[:, 1].isnan().all()
    assert (got.parts()["dq"][:, 1] == 0).all()


@pytest.mark.parametrize("score", [-50.0, -120.0, -1000.0])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_infinity_beside_a_sink_that_takes_everything(kernel: str, score: float) -> None:
    """A value that a row attends to marks it, also where its weight is 0 by rounding."""
    solver = next(k for k in KERNELS if k.name == kernel)
    q, k, v = torch.ones(1, 1, 1, 4), torch.full((1, 1, 1, 4), score / 2), torch.ones(1, 1, 1, 4)
    v[..., 0] = INF
    given = Case(q, k, v, {"sinks": torch.zeros(1)}).problem().flatten()
    if solver.supports(given):
        pytest.skip(f"{kernel}: {solver.supports(given)[0]}")
    out, lse = solver.solve(given)
    assert out[..., 0].item() == INF
    torch.testing.assert_close(out[..., 1:], torch.full((1, 1, 1, 3), score).exp())
    assert lse.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_what_is_masked_out(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, n, 3).to(dtype) for n in (5, 67, 67))
    mask = KeyLengths(torch.tensor([5, 66]))
    hidden = ~mask.dense(Case(q, k, v, {"mask": mask}).problem().frame)[:, :, 0]
    for bad in (NAN, INF, float(torch.finfo(dtype).max)):
        zeros = Case(q, spoil(k, hidden, 0.0), spoil(v, hidden, 0.0), {"mask": mask}).problem()
        spoiled = Case(q, spoil(k, hidden, bad), spoil(v, hidden, bad), {"mask": mask}).problem()
        for kernel in willing(zeros):
            want, got = solve_with(kernel, zeros), solve_with(kernel, spoiled)
            for name, mine in got.parts().items():
                torch.testing.assert_close(mine, want.parts()[name], rtol=2e-2, atol=2e-2)
