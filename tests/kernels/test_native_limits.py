"""The compiled kernel at the limits: of sizes, of numbers, of memory's order."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from kernel_cases import solve_with
from torch import Tensor

from headwise.attention import attention, problem
from headwise.kernels import KERNELS
from headwise.kernels.compiled import solve_compiled
from headwise.kernels.native_build import native
from headwise.kernels.tiled import Tiled
from headwise.masks import Allow, Causal, KeyLengths

pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built")

NATIVE = next(kernel for kernel in KERNELS if kernel.name == "native")
F32, BF16 = torch.float32, torch.bfloat16


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = F32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def exactly(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    out = attention(q.double(), k.double(), v.double(), kernel="reference", **options)
    return out.to(q.dtype)


# Sizes


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize(
    "sizes",
    [
        *((0, 2, 2, 3, 5, 4, 4), (1, 0, 0, 3, 5, 4, 4), (1, 2, 2, 0, 5, 4, 4), (1, 2, 2, 3, 0, 4, 4)),
        *((1, 2, 2, 3, 5, 0, 4), (1, 2, 2, 3, 5, 4, 0), (1, 2, 1, 1, 1, 1, 1), (2, 3, 1, 17, 1, 130, 257)),
    ],
)
def test_every_size_may_be_0_or_1(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    batch, heads, kv_heads, q_len, k_len, d_k, d_v = sizes
    shapes = (batch, heads, q_len, d_k), (batch, kv_heads, k_len, d_k), (batch, kv_heads, k_len, d_v)
    q, k, v = (one.requires_grad_() for one in drawn(*shapes, dtype=dtype))
    out = attention(q, k, v, kernel="native", mask=Causal(), align="start", scale=0.5)
    grads = torch.autograd.grad(out.float().sum(), (q, k, v))
    assert out.shape == (batch, heads, q_len, d_v)
    torch.testing.assert_close(
        out, exactly(q, k, v, mask=Causal(), align="start", scale=0.5), rtol=0.02, atol=0.02
    )
    assert all(
        grad.shape == x.shape and grad.isfinite().all() for grad, x in zip(grads, (q, k, v), strict=True)
    )


def test_many_heads() -> None:
    """65,536 of them."""
    q, k, v = drawn((256, 256, 2, 8), (256, 256, 3, 8), (256, 256, 3, 8))
    torch.testing.assert_close(attention(q, k, v, kernel="native"), attention(q, k, v, kernel="torch"))


@pytest.mark.parametrize("q_len", [1, 3, 40])
def test_many_keys(q_len: int) -> None:
    """100,003 of them, for a step of decoding and for more queries than that; grouped heads."""
    q, k, v = drawn((2, 4, q_len, 16), (2, 2, 100_003, 16), (2, 2, 100_003, 16))
    mask = KeyLengths([100_003, 77])
    got = attention(q, k, v, mask=mask, kernel="native")
    torch.testing.assert_close(got, attention(q, k, v, mask=mask, kernel="tiled"), rtol=1e-4, atol=1e-5)


# Memory


def test_memory_may_lie_in_any_order() -> None:
    """Strided, expanded (every row the same number), overlapping, and off any alignment."""
    (x,) = drawn((2, 3, 40, 24))
    (pool,) = drawn((2 * 3 * 40 * 24,))
    shifted = torch.frombuffer(bytearray(b"\0\0\0") + pool.numpy().tobytes(), dtype=F32, offset=3)
    overlapping = pool.as_strided((2, 3, 40, 24), (7, 5, 3, 1))
    ways = {
        "columns first": x.mT.contiguous().mT,
        "every second": x.repeat_interleave(2, -1)[..., ::2],
        "heads between rows": x.transpose(1, 2).contiguous().transpose(1, 2),
        "one row": x[:, :, :1].expand(x.shape),
        "one number": x[:1, :1, :1, :1].expand(x.shape),
        "overlapping": overlapping,
        "misaligned": shifted.view(x.shape),
    }
    for name, given in ways.items():
        leaf = given.detach().requires_grad_()
        out = attention(leaf, leaf, leaf, kernel="native", mask=Causal())
        torch.testing.assert_close(out, exactly(given, given, given, mask=Causal()), msg=name)
        (grad,) = torch.autograd.grad(out.square().sum(), leaf)
        plain = given.clone(memory_format=torch.contiguous_format).requires_grad_()
        again = attention(plain, plain, plain, kernel="native", mask=Causal())
        torch.testing.assert_close(grad, torch.autograd.grad(again.square().sum(), plain)[0], msg=name)


def test_the_default_type_and_device_of_new_tensors_do_not_matter() -> None:
    q, k, v = (one.requires_grad_() for one in drawn((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)))
    options: dict[str, Any] = {"mask": Causal() & KeyLengths(5), "sinks": torch.zeros(3), "kernel": "native"}
    want = attention(q, k, v, **options)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            got = attention(q, k, v, **options)
            grads = torch.autograd.grad(got.sum(), (q, k, v))
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(got, want)
    assert all(grad.dtype == F32 and grad.device.type == "cpu" for grad in grads)


# Numbers


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["keys", "values", "both"])
def test_what_is_masked_cannot_leak(dtype: torch.dtype, bad: float, where: str) -> None:
    """Neither into the output nor into any gradient, by ranges and by a matrix."""
    q, k, v = drawn((2, 2, 50, 24), (2, 2, 70, 24), (2, 2, 70, 24), dtype=dtype)
    hidden = torch.zeros(70, dtype=torch.bool)
    hidden[[3, 40, 69]] = True
    lengths, pairs = KeyLengths([61, 70]), Allow(~hidden)
    for mask, places in (
        (pairs, [3, 40, 69]),
        (KeyLengths(61), [61, 66, 69]),
        (lengths & pairs, [3, 40, 69]),
    ):
        found = []
        for fill in (0.0, bad):
            leaves = [q.clone(), k.clone(), v.clone()]
            if where in ("keys", "both"):
                leaves[1][:, :, places] = fill
            if where in ("values", "both"):
                leaves[2][:, :, places] = fill
            leaves = [leaf.requires_grad_() for leaf in leaves]
            out = attention(*leaves, mask=mask, kernel="native")
            found.append((out, *torch.autograd.grad(out.float().square().sum(), leaves)))
        for name, clean, dirty in zip(("out", "dq", "dk", "dv"), *found, strict=True):
            assert dirty.isfinite().all(), f"{name} isn't finite"
            near = {} if dtype == F32 else {"rtol": 0.03, "atol": 0.03}
            torch.testing.assert_close(dirty, clean, **near)


@pytest.mark.parametrize("scale", [1e-30, 1e-41, 1e15, 3e38])
def test_tiny_and_huge_numbers(scale: float) -> None:
    """Denormals, and scores whose exponentials or products overflow: as the tiled kernel has it, in whose
    hands the last ones end."""
    q, k, v = drawn((1, 2, 40, 8), (1, 2, 40, 8), (1, 2, 40, 8))
    for given in ((q * scale, k, v), (q, k, v * scale), (q * min(scale, 1e18), k * min(scale, 1e18), v)):
        leaves = [one.clone().requires_grad_() for one in given]
        want = solve_with(Tiled(), problem(*given))
        got = solve_with(NATIVE, problem(*leaves))
        for name, mine in got.parts().items():
            right = want.parts()[name]
            size = float(torch.where(right.isfinite(), right, 0).abs().max())
            torch.testing.assert_close(
                mine,
                right,
                rtol=2e-3,
                atol=1e-4 * max(1.0, size),
                equal_nan=True,
                msg=lambda text, name=name: f"{name}: {text}",
            )


def test_rows_without_keys_are_0_and_send_nothing_back() -> None:
    q, k, v = (one.requires_grad_() for one in drawn((1, 2, 40, 8), (1, 2, 20, 8), (1, 2, 20, 8)))
    out = attention(q, k, v, mask=Causal(), kernel="native")
    assert (out[:, :, :20] == 0).all()
    (d_q,) = torch.autograd.grad(out.sum(), q)
    assert (d_q[:, :, :20] == 0).all()


# Graphs


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_the_operation_of_graphs_passes_torchs_own_checks(dtype: torch.dtype) -> None:
    given = problem(*drawn((2, 4, 9, 8), (2, 2, 9, 8), (2, 2, 9, 5), dtype=dtype), mask=Causal())
    seen: list[tuple[Any, ...]] = []
    real = torch.ops.headwise.attention

    class Watched:
        def __call__(self, *arguments: Any) -> Any:
            seen.append(arguments)
            return real(*arguments)

    torch.ops.headwise.attention = Watched()
    try:
        solve_compiled(given, "native")
    finally:
        torch.ops.headwise.attention = real
    (arguments,) = seen
    leaves = [x.requires_grad_() if x is not None and i < 3 else x for i, x in enumerate(arguments)]
    torch.library.opcheck(real.default, tuple(leaves), rtol=0.05, atol=0.05)


def test_it_compiles_into_one_graph_with_its_gradient() -> None:
    leaves = [one.requires_grad_() for one in drawn((2, 4, 9, 8), (2, 2, 9, 8), (2, 2, 9, 8))]

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, mask=Causal(), kernel="native")

    found = []
    for run in (call, torch.compile(call, fullgraph=True, backend="aot_eager")):
        out = run(*leaves)
        found.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)
