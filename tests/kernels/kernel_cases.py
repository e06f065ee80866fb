"""Attention calls drawn at random, and ways to compute them: what the tests of the kernels share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

from headwise.attention import problem
from headwise.kernels import KERNELS, Kernel, Problem
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.positions import AddedScores, ALiBi, Bias, RelativeBuckets

# Primes, and the ends of tiles of 64.
SHORT = (0, 1, 2, 3, 5, 7, 13, 19)
EDGES = (63, 64, 65)
HEADS = ((1, 1), (2, 2), (2, 1), (3, 1), (6, 2))  # heads, kv_heads
WIDTHS = ((3, 3), (5, 5), (2, 7), (5, 1))  # d_k, d_v


def examples(count: int) -> settings:
    """Settings of a property test; HEADWISE_EXAMPLES multiplies the count."""
    count *= int(os.environ.get("HEADWISE_EXAMPLES", "1"))
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Case:
    """The arguments of one call. `seed` is of its dropout."""

    q: Tensor
    k: Tensor
    v: Tensor
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    def problem(self) -> Problem:
        options = dict(self.options)
        if options.get("dropout"):
            options["generator"] = torch.Generator().manual_seed(self.seed)
        return problem(self.q, self.k, self.v, **options)

    def to(self, dtype: torch.dtype) -> Case:
        """The same numbers (already rounded to them) in another dtype."""
        options = dict(self.options)
        for name in ("bias", "sinks"):
            if isinstance(options.get(name), Tensor):
                options[name] = options[name].to(dtype)
            elif isinstance(options.get(name), Bias):
                options[name] = options[name].with_tensors(*(t.to(dtype) for t in options[name].tensors()))
        return replace(self, q=self.q.to(dtype), k=self.k.to(dtype), v=self.v.to(dtype), options=options)

    def __repr__(self) -> str:
        options = {name: _said(value) for name, value in self.options.items()}
        return f"q{list(self.q.shape)} k{list(self.k.shape)} v{list(self.v.shape)} {options}"


def _said(value: object) -> object:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else value


@dataclass(frozen=True)
class Result:
    """What a kernel gives: out, lse, and the gradients of everything that may have one."""

    out: Tensor
    lse: Tensor
    grads: tuple[Tensor, ...]
    names: tuple[str, ...]

    def parts(self) -> dict[str, Tensor]:
        return {"out": self.out, "lse": self.lse, **dict(zip(self.names, self.grads, strict=True))}


def willing(given: Problem) -> list[Kernel]:
    """The kernels that take a problem."""
    return [kernel for kernel in KERNELS if not kernel.supports(given.flatten())]


def solve_with(
    kernel: Kernel | Callable[[Problem], tuple[Tensor, Tensor]],
    given: Problem,
    seed: int = 7,
    rounded: torch.dtype = torch.float64,
) -> Result:
    """out, lse, and the gradients that random gradients of both send back, of out's rounded to a type."""
    tensors = tuple(t.detach().requires_grad_() for t in given.differentiable())
    has_sinks = given.sinks is not None
    whole = given.with_differentiable(tensors, has_sinks=has_sinks)
    flat = whole.flatten()
    out, lse = (kernel.solve if isinstance(kernel, Kernel) else kernel)(flat)
    generator = torch.Generator().manual_seed(seed)
    d_out = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(rounded).to(out.dtype)
    d_lse = torch.randn(lse.shape, generator=generator, dtype=torch.float64).to(lse.dtype)
    grads = torch.autograd.grad([out, lse], tensors, [d_out, d_lse], materialize_grads=True)
    extra = len(tensors) - 3 - has_sinks
    names = ("dq", "dk", "dv", *(["dsinks"] if has_sinks else []), *(f"dbias{i}" for i in range(extra)))
    return Result(out.detach(), lse.detach(), grads, names)


def assert_same(got: Result, want: Result, *, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    for name, mine in got.parts().items():
        torch.testing.assert_close(
            mine, want.parts()[name], rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}"
        )


# Drawing calls


@st.composite
def cases(draw: st.DrawFn, *, lengths: tuple[int, ...] = SHORT + EDGES, plain: bool = False) -> Case:
    """Any call at all in float64; `plain` leaves out dropout, softcap and sinks."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    batch = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 3), (0,)]))
    heads, kv_heads = draw(st.sampled_from(HEADS))
    d_k, d_v = draw(st.sampled_from(WIDTHS))
    q_len, k_len = draw(st.sampled_from(lengths)), draw(st.sampled_from(lengths))
    kv_batch = draw(st.sampled_from(_narrower(batch)))

    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    q, k, v = (
        _strided(draw, tensor, shape)
        for shape in (
            (*batch, heads, q_len, d_k),
            (*kv_batch, kv_heads, k_len, d_k),
            (*kv_batch, kv_heads, k_len, d_v),
        )
    )
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["align"] = draw(st.sampled_from(["start", "end"]))
    holes = _positions(draw, generator, options, batch, q_len, k_len)
    mask = draw(st.none() | masks(generator, batch, heads, q_len, k_len, options))
    if holes:
        mask = ValidKeys() if mask is None else ValidKeys() & mask
    options["mask"] = mask
    options["bias"] = draw(st.none() | biases(tensor, batch, heads, q_len, k_len))
    if draw(st.booleans()):
        options["scale"] = draw(st.sampled_from([0.3, 1.0, -0.5]))
    if not plain:
        if draw(st.booleans()):
            options["softcap"] = draw(st.sampled_from([0.7, 2.0]))
        if draw(st.booleans()):
            options["sinks"] = tensor(heads)
            if draw(st.booleans()):
                options["sinks"][0] = float("-inf")  # a head without a sink
        options["dropout"] = draw(st.sampled_from([0.0, 0.0, 0.3]))
    return Case(q, k, v, options, seed=draw(st.integers(0, 100)))


def _narrower(batch: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Batch dimensions that broadcast to these."""
    return [batch, batch, batch[1:], (1,) * len(batch), (1, *batch[1:]) if batch else ()]


def _strided(draw: st.DrawFn, tensor: Callable[..., Tensor], shape: tuple[int, ...]) -> Tensor:
    """A random tensor whose memory lies as callers' memory does."""
    how = draw(st.sampled_from(["dense", "heads between rows", "every second", "expanded", "across"]))
    if how == "heads between rows":  # [.., length, heads, d] as a projection makes it
        return tensor(*shape[:-3], shape[-2], shape[-3], shape[-1]).transpose(-3, -2)
    if how == "every second":
        return tensor(*shape[:-1], 2 * shape[-1])[..., ::2]
    if how == "expanded":
        return tensor(*shape[:-3], 1, *shape[-2:]).expand(shape)
    if how == "across":
        return tensor(*shape[:-2], shape[-1], shape[-2]).mT
    return tensor(*shape)


def _positions(
    draw: st.DrawFn,
    generator: torch.Generator,
    options: dict[str, Any],
    batch: tuple[int, ...],
    q_len: int,
    k_len: int,
) -> bool:
    """Explicit positions in any order, for the whole batch or per entry; true if some keys stand at -1."""
    span, holes = 2 * max(q_len, k_len) + 1, False
    for name, length in (("q_positions", q_len), ("k_positions", k_len)):
        if draw(st.sampled_from([True, False, False])):
            shape = (*batch, length) if draw(st.booleans()) else (length,)
            positions = torch.randint(0, span, shape, generator=generator)
            if name == "k_positions" and draw(st.booleans()):
                positions[torch.rand(shape, generator=generator) < 0.3] = -1
                holes = True
            options[name] = positions
    return holes


def masks(
    generator: torch.Generator,
    batch: tuple[int, ...],
    heads: int,
    q_len: int,
    k_len: int,
    options: dict[str, Any],
) -> st.SearchStrategy[Mask]:
    """Every kind of mask, and compositions of them."""
    span = 2 * max(q_len, k_len) + 1  # positions lie below it

    def integers(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=generator)

    def allow(shape: tuple[int, ...], share: float) -> Mask:
        return Allow(torch.rand(shape, generator=generator) < share)

    side = st.none() | st.integers(0, 4)
    lengths = st.builds(
        lambda each: integers(0, k_len, *batch) if each else int(integers(0, k_len)), st.booleans()
    )
    # Runs of equal numbers, as documents are; -1 is padding.
    ids = st.builds(
        lambda each, run: (
            integers(-1, 3, *(batch if each else ()), span).sort(-1).values
            if run
            else integers(-1, 2, *(batch if each else ()), span)
        ),
        st.booleans(),
        st.booleans(),
    )
    shapes = [
        (q_len, k_len),
        (1, k_len),
        (q_len, 1),
        (heads, q_len, k_len),
        (heads, 1, 1),
        (*batch, 1, 1, k_len),
        (*batch, heads, q_len, k_len),
        (*batch[:1], *(1,) * len(batch[1:]), 1, q_len, k_len),
    ]
    cross = st.builds(
        lambda each, keys: Documents(keys, query_ids=integers(-1, 2, *(batch if each else ()), q_len)),
        st.booleans(),
        ids,
    )
    kinds: st.SearchStrategy[Mask] = st.one_of(
        st.just(Causal()),
        st.builds(Window, side, side),
        st.builds(KeyLengths, lengths),
        st.builds(Prefix, lengths),
        st.builds(Documents, ids),
        cross,
        st.builds(allow, st.sampled_from(shapes), st.sampled_from([0.02, 0.5, 0.98])),
        st.just(ValidKeys()),
    )
    return st.recursive(
        kinds,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(lambda a: ~a, inner),
        ),
        max_leaves=3,
    )


def biases(
    tensor: Callable[..., Tensor], batch: tuple[int, ...], heads: int, q_len: int, k_len: int
) -> st.SearchStrategy[Bias]:
    """Every kind of bias: tensors of each broadcast shape, some with -inf; ALiBi; buckets; sums."""

    def added(shape: tuple[int, ...], hide: bool) -> Bias:
        numbers = tensor(*shape)
        if hide:
            numbers = numbers.masked_fill(tensor(*shape) > 0.5, float("-inf"))
        return AddedScores(numbers)

    ones = (1,) * len(batch)
    shapes = {
        (),
        (k_len,),
        (q_len, 1),
        (heads, 1, 1),
        (heads, q_len, k_len),
        (*batch, heads, q_len, k_len),
        (*batch, 1, q_len, 1),
        (*batch, 1, 1, k_len),
        (*ones, heads, 1, k_len),
        (*batch[:1], *ones[1:], 1, q_len, k_len),
        (*ones[:1], *batch[1:], heads, 1, k_len),
    }
    kinds: st.SearchStrategy[Bias] = st.one_of(
        st.builds(added, st.sampled_from(sorted(shapes)), st.sampled_from([False, False, True])),
        st.builds(lambda both: ALiBi(tensor(heads), symmetric=both), st.booleans()),
        st.builds(lambda both: RelativeBuckets(tensor(8, heads), both, 16), st.booleans()),
    )
    return st.one_of(kinds, kinds, st.builds(lambda a, b: a + b, kinds, kinds))
