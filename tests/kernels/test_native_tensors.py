"""Which tensors the compiled kernel reads by address: plain ones alone, in whatever order they lie in memory.
Other ones get their numbers from kernels that go through torch's dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from native_inputs import SIZES, call, drawn, extras, plain, watch_calls
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

import headwise as hw
from headwise.attention import problem
from headwise.kernels.addresses import address, readable
from headwise.kernels.choose import named
from headwise.kernels.native_build import native

pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch_calls(monkeypatch)


# Kinds of tensors


@pytest.mark.parametrize("odd", [*SIZES, *(name for name in extras() if name != "lengths")])
def test_a_subclass_is_never_read_by_its_address(odd: str, calls: list[str]) -> None:
    """Its numbers lie elsewhere, or nowhere: reading them ended the process, or gave numbers of nobody.
    (`KeyLengths` itself refuses one.)"""
    given = drawn()
    if odd in extras():
        given[odd] = extras()[odd]
    want = call(given, kernel="reference")
    two = {**given, odd: TwoTensor(given[odd], given[odd].clone())}
    torch.testing.assert_close(plain(call(two)), want)
    assert calls == []
    with pytest.raises(ValueError, match="plain tensors, and was given a TwoTensor"):
        call(two, kernel="native")
    assert not readable(two[odd])
    call(given)
    assert calls  # so that the others say something


def test_a_subclass_has_gradients(calls: list[str]) -> None:
    leaves = {name: x.requires_grad_() for name, x in drawn().items()}
    want = torch.autograd.grad(call(leaves, kernel="reference").square().sum(), list(leaves.values()))
    two = {name: TwoTensor(x.detach(), x.detach().clone()).requires_grad_() for name, x in leaves.items()}
    got = torch.autograd.grad(call(two).square().sum(), list(two.values()))
    for mine, right in zip(got, want, strict=True):
        torch.testing.assert_close(plain(mine), right, rtol=1e-4, atol=1e-5)
    assert calls == []


@pytest.fixture
def one_rank() -> Iterator[Any]:
    distributed = torch.distributed
    if not distributed.is_available() or distributed.is_initialized():
        pytest.skip("no process group can be made here")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        yield distributed.device_mesh.init_device_mesh("cpu", (1,))
    finally:
        distributed.destroy_process_group()


def test_distributed_tensors(one_rank: Any, calls: list[str]) -> None:
    from torch.distributed.tensor import Replicate, distribute_tensor

    given = drawn()
    spread = {name: distribute_tensor(x, one_rank, [Replicate()]) for name, x in given.items()}
    torch.testing.assert_close(call(spread).to_local(), call(given, kernel="reference"))  # type: ignore[attr-defined]
    assert calls == []


@pytest.mark.parametrize("odd", [*SIZES, *extras()])
def test_fake_tensors_beside_real_ones_raise_and_do_not_crash(odd: str, calls: list[str]) -> None:
    given = drawn()
    if odd in extras():
        given[odd] = extras()[odd]
    with FakeTensorMode() as mode:
        given[odd] = mode.from_tensor(given[odd])
    # What torch says of it, or a mask that asks for the fake one's values.
    with pytest.raises(Exception, match=r"(?i)fake"):
        call(given)
    assert calls == []
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        real = drawn()
        assert call(real).shape == SIZES["q"]
        beside = {name: mode.from_tensor(x) if name != "q" else x for name, x in real.items()}
        assert call(beside).shape == SIZES["q"]
    assert calls == []


ODD: dict[str, Callable[[Tensor], Tensor]] = {
    "of zeros without memory": lambda x: torch._efficientzerotensor(x.shape),
    "functional": torch._to_functional_tensor,
    "freed": lambda x: _freed(x.clone()),
    "coo": Tensor.to_sparse,
    "csr": lambda x: x[0, 0].to_sparse_csr(),
    "mkldnn": Tensor.to_mkldnn,
    "meta": lambda x: x.to("meta"),
    "a subclass": lambda x: TwoTensor(x, x),
}


def _freed(x: Tensor) -> Tensor:
    x.untyped_storage().resize_(0)
    return x


@pytest.mark.parametrize("kind", list(ODD))
def test_tensors_that_only_look_as_if_they_had_memory(kind: str) -> None:
    odd = ODD[kind](drawn()["q"])
    assert not readable(odd)
    with pytest.raises((TypeError, RuntimeError)):
        address(odd)


def test_tensors_that_have_memory() -> None:
    q = drawn()["q"]
    for x in (q, nn.Parameter(q), q[0, :, 3:, ::2], q[:1, :1].expand(q.shape), q[:0], torch.zeros(3, 0)):
        assert readable(x)
        assert address(x) == x.data_ptr()
    assert named("native").supports(problem(nn.Parameter(q), q, q)) == ()


def test_zeros_without_memory_and_functional_tensors_are_computed_elsewhere(calls: list[str]) -> None:
    given = drawn()
    zeros = {**given, "q": torch._efficientzerotensor(SIZES["q"])}
    want = call({**given, "q": torch.zeros(SIZES["q"])}, kernel="reference")
    torch.testing.assert_close(call(zeros), want)
    got = call({name: torch._to_functional_tensor(x) for name, x in given.items()})
    torch.testing.assert_close(torch._from_functional_tensor(got), call(given, kernel="reference"))
    assert calls == []


def test_other_layouts_are_refused_with_the_way_out() -> None:
    q, k, v = drawn().values()
    for given in ((q.to_sparse(), k, v), (q, k.to_mkldnn(), v)):
        with pytest.raises(
            TypeError, match=r"attention reads strided tensors; convert with [qk].to_dense\(\)"
        ):
            hw.attention(*given)
    nested = torch.nested.nested_tensor([q[0], q[1]], layout=torch.jagged)
    old = torch.nested.nested_tensor([q[0], q[1]])
    for one in (nested, old):
        with pytest.raises(TypeError, match="q is a nested tensor: pad it"):
            hw.attention(one, one, one)


# Views


@dataclass
class View:
    """A way to lay numbers into memory, and the same numbers laid plainly."""

    name: str
    of: Callable[[Tensor], Tensor]


def _negative(x: Tensor) -> Tensor:
    return torch._neg_view(-x)


def _imaginary(x: Tensor) -> Tensor:
    return torch.complex(x, -x).conj().imag


VIEWS = [View("negative bit", _negative), View("imaginary part of a conjugate", _imaginary)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@pytest.mark.parametrize("odd", [*SIZES, "bias", "sinks", "q_positions", "lengths", "ids"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_minus_beside_the_memory_is_read(view: View, odd: str, dtype: torch.dtype) -> None:
    """torch keeps the sign of some views as a bit of the tensor: without it, every sign is wrong."""
    given = drawn()
    if odd in extras():
        given[odd] = extras()[odd]
    given = {name: x.to(dtype) if x.is_floating_point() else x for name, x in given.items()}
    whole = view.name != "negative bit"
    if whole and given[odd].dtype != torch.float32:
        pytest.skip("complex numbers are of float32")
    turned = {**given, odd: view.of(given[odd])}
    assert turned[odd].is_neg()
    assert torch.equal(turned[odd], given[odd])
    found = []
    for one in (given, turned):
        leaves = {name: x.detach().requires_grad_() for name, x in one.items() if x.is_floating_point()}
        out = call({**one, **leaves}, kernel="native")
        found.append((out, *torch.autograd.grad(out.float().square().sum(), list(leaves.values()))))
    for mine, right in zip(found[1], found[0], strict=True):
        assert torch.equal(mine, right)
    assert torch.equal(call(turned), call(given))  # and by the short way


def test_a_gradient_with_a_minus_beside_the_memory() -> None:
    leaves = {name: x.requires_grad_() for name, x in drawn().items()}
    out, seen = call(leaves, kernel="native", observe=[hw.LogSumExp()])
    outputs = out, seen.log_sum_exp
    ones = [torch.ones_like(y) for y in outputs]
    sources = list(leaves.values())
    want = torch.autograd.grad(outputs, sources, ones, retain_graph=True)
    got = torch.autograd.grad(outputs, sources, [_negative(one) for one in ones])
    assert all(torch.equal(mine, right) for mine, right in zip(got, want, strict=True))


@pytest.mark.parametrize("odd", list(SIZES))
@pytest.mark.parametrize("strides", [(0, 0, 1, 1), (7, 5, 3, 1), (0, 0, 0, 1), (0, 0, 0, 0), (1, 1, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_tensors_that_overlap_themselves(
    odd: str, strides: tuple[int, ...], dtype: torch.dtype
) -> None:
    """A gradient of the same strides would have been written to one place by many numbers."""
    given = {name: x[:, :, :9, :16].to(dtype) for name, x in drawn().items()}
    given[odd] = drawn()[odd].to(dtype).flatten().as_strided((2, 4, 9, 16), strides)
    found = []
    for kernel, cast in (("native", dtype), ("reference", torch.float64)):
        leaves = {name: x.detach().to(cast).requires_grad_() for name, x in given.items()}
        if kernel == "native":
            assert leaves[odd].stride() == strides
        out = call(leaves, kernel=kernel)
        found.append(torch.autograd.grad(out.square().sum(), list(leaves.values())))
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.2}
    for mine, right in zip(*found, strict=True):
        torch.testing.assert_close(mine.double(), right, **near)


@pytest.mark.parametrize("kernel", ["native", "torch", "tiled", "reference"])
def test_a_gradient_of_zeros_without_memory(kernel: str) -> None:
    leaves = {name: x.requires_grad_() for name, x in drawn().items()}
    out = call(leaves, kernel=kernel)
    for grad in torch.autograd.grad(out, list(leaves.values()), torch._efficientzerotensor(out.shape)):
        assert (grad == 0).all()
