"""Derivatives: of every kernel by finite differences; of any order and kind through the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from kernel_cases import Case, willing
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from headwise.attention import attention, explain, problem, solve
from headwise.kernels import KERNELS
from headwise.masks import Allow, Causal, Documents, KeyLengths, Window
from headwise.positions import AddedScores, ALiBi, RelativeBuckets

KERNEL_NAMES = [kernel.name for kernel in KERNELS]
HEADS, KV_HEADS = 2, 1


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def inputs(q_len: int = 3, k_len: int = 5, d_k: int = 2, d_v: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((2, HEADS, q_len, d_k), (2, KV_HEADS, k_len, d_k), (2, KV_HEADS, k_len, d_v))
    q, k, v = (drawn(*shape).requires_grad_() for shape in shapes)
    return q, k, v


# Each: what to build from further leaves, and the leaves.
OPTIONS: dict[str, tuple[Callable[..., dict[str, Any]], tuple[tuple[int, ...], ...]]] = {
    "plain": (dict, ()),
    "causal": (lambda: {"mask": Causal()}, ()),
    "dead rows": (lambda: {"mask": Causal() & KeyLengths(torch.tensor([0, 4]))}, ()),
    "documents": (lambda: {"mask": Documents(torch.tensor([0, 1, 1, -1, 2])) & Window(3, 1)}, ()),
    "pairs": (lambda: {"mask": Allow(drawn(2, HEADS, 3, 5) > 0.3), "softcap": 1.5}, ()),
    "softcap and dropout": (lambda: {"softcap": 0.7, "dropout": 0.3, "scale": -0.8}, ()),
    "sinks": (lambda sinks: {"sinks": sinks, "mask": Window(2, 0)}, ((HEADS,),)),
    "bias": (lambda t: {"bias": AddedScores(t)}, ((2, 1, 3, 5),)),
    "bias per key and head": (lambda t: {"bias": AddedScores(t), "mask": Causal()}, ((HEADS, 1, 5),)),
    "alibi": (lambda t: {"bias": ALiBi(t), "mask": Causal()}, ((HEADS,),)),
    "buckets": (lambda t: {"bias": RelativeBuckets(t, True, 4)}, ((4, HEADS),)),
    "everything": (
        lambda t, u, s: {
            "bias": AddedScores(t) + ALiBi(u, symmetric=True),
            "sinks": s,
            "softcap": 2.0,
            "dropout": 0.2,
            "mask": Causal() | Window(0, 1),
        },
        ((HEADS, 3, 5), (HEADS,), (HEADS,)),
    ),
}


def call(kernel: str, name: str) -> tuple[Callable[..., tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """A function of leaves that gives out and the log-sum-exp of rows that attend to something."""
    build, shapes = OPTIONS[name]
    leaves = (*inputs(), *(drawn(*shape).requires_grad_() for shape in shapes))

    def function(q: Tensor, k: Tensor, v: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        options = build(*more)
        if options.get("dropout"):
            options["generator"] = torch.Generator().manual_seed(3)
        out, lse = solve(problem(q, k, v, **options), kernel=kernel)
        return out, torch.where(lse == float("-inf"), 0, lse)

    return function, leaves


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_gradients_by_finite_differences(kernel: str, name: str) -> None:
    """FA#404, #889, #1137, #141, pytorch PR#189784 and JAX's return_residual: log-sum-exp without a
    gradient trains rings, merges and sinks wrongly. Here it is an output like any other."""
    function, leaves = call(kernel, name)
    options = OPTIONS[name][0](*leaves[3:])
    if kernel not in [k.name for k in willing(Case(*leaves[:3], options).problem())]:
        pytest.skip(f"{kernel} refuses")
    assert gradcheck(function, leaves)


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("kernel", ["reference", "auto"])
def test_second_derivatives_by_finite_differences(kernel: str, name: str) -> None:
    """pytorch#116350, #154226, FA#1672: no double backward through fused kernels. `auto` differentiates
    its kernel's gradients through the reference."""
    function, leaves = call(kernel, name)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("kernel", ["reference", "auto"])
def test_forward_mode(kernel: str, name: str) -> None:
    """pytorch#116348, #98164: jvp through fused kernels raises. Forward and reverse agree:
    u . (J t) = (u J) . t."""
    function, leaves = call(kernel, name)
    tangents = [torch.randn_like(leaf) for leaf in leaves]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(leaf.detach(), t) for leaf, t in zip(leaves, tangents, strict=True)]
        pushed = [forward_ad.unpack_dual(y).tangent for y in function(*duals)]
    outputs = function(*leaves)
    weights = [torch.randn_like(y) for y in outputs]
    pulled = torch.autograd.grad(outputs, leaves, weights, allow_unused=True, materialize_grads=True)
    left = sum((w * p).sum() for w, p in zip(weights, pushed, strict=True))
    right = sum((g * t).sum() for g, t in zip(pulled, tangents, strict=True))
    torch.testing.assert_close(left, right)


def test_forward_mode_asks_for_the_reference() -> None:
    q, k, v = (t.detach() for t in inputs())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.randn_like(q))
        assert explain(dual, k, v).kernel.name == "reference"
        assert "forward-mode" in str(explain(dual, k, v))
        with pytest.raises(ValueError, match="forward-mode"):
            attention(dual, k, v, kernel="tiled")
    assert explain(q, k, v).kernel.name != "reference"


def test_second_derivatives_are_right_and_strict_refuses_them() -> None:
    """The gradient penalty of a loss: by `tiled` (through the reference), by the reference, and refused
    where memory that grows with q_len x k_len was forbidden."""
    penalties = {}
    for kernel in ("reference", "tiled", "auto"):
        q, k, v = inputs()
        out = attention(q, k, v, mask=Causal(), kernel=kernel)
        grads = torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=True)
        penalty = sum(g.square().sum() for g in grads)
        penalties[kernel] = torch.autograd.grad(penalty, (q, k, v))
    for kernel in ("tiled", "auto"):
        for mine, want in zip(penalties[kernel], penalties["reference"], strict=True):
            torch.testing.assert_close(mine, want)
    q, k, v = inputs()
    out = attention(q, k, v, strict=True)
    with pytest.raises(RuntimeError, match="strict=True forbids"):
        torch.autograd.grad(out.sum(), q, create_graph=True)
    torch.autograd.grad(out.sum(), q)  # the first derivative is still there


def test_transforms() -> None:
    """pytorch#117016, learn2learn#429, diffusers#5678: vmap, per-sample gradients, jacrev and hessian."""
    q, k, v = (t.detach() for t in inputs())

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, mask=Causal()).square().sum()

    want = attention(q, k, v, mask=Causal())
    torch.testing.assert_close(torch.vmap(lambda *t: attention(*t, mask=Causal()))(q, k, v), want)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    grads = torch.autograd.grad(loss(*leaves), leaves)
    each = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(q, k, v)  # gradients per sample
    for mine, theirs in zip(each, grads, strict=True):
        torch.testing.assert_close(mine, theirs)
    small = [t[0] for t in (q, k, v)]
    by_rows = torch.func.jacrev(lambda q: attention(q, *small[1:]))(small[0])
    by_columns = torch.func.jacfwd(lambda q: attention(q, *small[1:]))(small[0])
    torch.testing.assert_close(by_rows, by_columns)
    curved = torch.func.hessian(lambda q: loss(q, *small[1:]))(small[0])
    size = small[0].numel()
    matrix = curved.reshape(size, size)
    torch.testing.assert_close(matrix, matrix.T)
    want_matrix = torch.autograd.functional.hessian(lambda q: loss(q, *small[1:]), small[0])
    torch.testing.assert_close(curved, want_matrix)


def test_transforms_over_masks_and_biases() -> None:
    """What a mask or a bias holds may be mapped over as well."""
    q, k, v = (t.detach() for t in inputs())
    lengths = torch.tensor([3, 5])

    def one(q: Tensor, k: Tensor, v: Tensor, n: Tensor, slopes: Tensor) -> Tensor:
        return attention(q, k, v, mask=KeyLengths(n), bias=ALiBi(slopes), sinks=slopes)

    slopes = drawn(2, HEADS)
    got = torch.vmap(one)(q, k, v, lengths, slopes)
    for b in range(2):
        torch.testing.assert_close(got[b], one(q[b], k[b], v[b], lengths[b], slopes[b]))


def test_transforms_run_on_the_reference_and_on_nothing_else() -> None:
    q, k, v = (t.detach() for t in inputs())
    seen: list[str] = []

    def record(q: Tensor) -> Tensor:
        seen.append(explain(q, k, v).kernel.name)
        return attention(q, k, v).sum()

    torch.func.grad(record)(q)
    assert seen == ["reference"]
    with pytest.raises(ValueError, match=r"torch\.func"):
        torch.func.grad(lambda q: attention(q, k, v, kernel="tiled").sum())(q)
    with pytest.raises(ValueError, match="strict=True"):
        torch.func.grad(lambda q: attention(q, k, v, strict=True).sum())(q)


@pytest.mark.parametrize("wanted", ["q", "k", "v", "bias", "sinks"])
@pytest.mark.parametrize("kernel", ["reference", "tiled", "torch"])
def test_only_what_asks_for_a_gradient_gets_one(kernel: str, wanted: str) -> None:
    tensors = dict(zip(("q", "k", "v"), (t.detach() for t in inputs()), strict=True))
    tensors |= {"bias": drawn(HEADS, 1, 5), "sinks": drawn(HEADS)}
    if kernel == "torch":
        tensors.pop("sinks")
    if wanted not in tensors:
        pytest.skip("the fused operation has no sinks")
    tensors[wanted].requires_grad_()
    q, k, v = (tensors.pop(name) for name in ("q", "k", "v"))
    out = attention(q, k, v, kernel=kernel, **tensors)
    out.sum().backward()
    have = {name: t.grad is not None for name, t in {"q": q, "k": k, "v": v, **tensors}.items()}
    assert have == {name: name == wanted for name in have}


def test_gradients_of_expanded_inputs_add_up() -> None:
    """k and v of one sequence for a whole batch: their gradient is the sum over the batch."""
    q, k, v = (t.detach() for t in inputs())
    for kernel in ("reference", "tiled", "torch"):
        one = [t[:1].clone().requires_grad_() for t in (k, v)]
        many = [t[:1].repeat(2, 1, 1, 1).requires_grad_() for t in (k, v)]
        weights = drawn(2, HEADS, 3, 2)
        got = torch.autograd.grad((attention(q, *one, kernel=kernel) * weights).sum(), one)
        want = torch.autograd.grad((attention(q, *many, kernel=kernel) * weights).sum(), many)
        for mine, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(mine, theirs.sum(0, keepdim=True))


def test_inputs_changed_in_place_before_the_backward_pass_are_noticed() -> None:
    """The gradient is that of the numbers which went in, or there is an error: never one of a mixture."""
    q, k, v = inputs()
    want = torch.autograd.grad(attention(q, k, v).sum(), (q, v))
    for kernel in ("reference", "tiled", "torch"):
        moved = k.detach().clone()
        out = attention(q, moved, v, kernel=kernel)
        moved.add_(1)
        try:
            got = torch.autograd.grad(out.sum(), (q, v))
        except RuntimeError as error:
            assert kernel != "reference"
            assert "modified by an inplace operation" in str(error)  # noqa: PT017
        else:
            torch.testing.assert_close(got, want)
