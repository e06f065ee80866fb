"""What masks hand to the compiled kernel, which reads memory: shapes, types, classes, positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from native_sets import SETS
from torch import Tensor

from headwise.attention import attention, explain
from headwise.kernels.native_build import native
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.observers import Mass
from headwise.positions.added import AddedScores

pytestmark = [
    pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built"),
    pytest.mark.usefixtures("native_as_it_was"),
]

LARGEST = torch.iinfo(torch.int64).max


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, heads, n, 16, generator=generator) for heads, n in ((4, 3), (2, 70), (2, 70)))
    return q, k, v


def assert_as_reference(**options: Any) -> None:
    q, k, v = drawn()
    got, want = (attention(q, k, v, kernel=kernel, **options) for kernel in ("native", "reference"))
    torch.testing.assert_close(got, want)


# A mask of one's own


class Own(Mask):
    def __init__(self, given: Tensor, *, whole: bool) -> None:
        object.__setattr__(self, "_given", given)
        if whole:
            object.__setattr__(self, "block", lambda *_: given)

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        given: Tensor = self.__dict__["_given"]
        return given

    def describe(self) -> str:
        return "a mask of one's own"


@pytest.mark.parametrize("kernel", ["native", "auto"])
@pytest.mark.parametrize("shape", [(1, 5), (2, 70), (70, 3), (2, 4, 3, 71), (1, 1, 1, 3, 70), (0, 70)])
def test_a_mask_of_the_wrong_shape_is_refused_and_not_read(kernel: str, shape: tuple[int, ...]) -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"broadcast|shape"):
        attention(*drawn(), mask=Own(torch.ones(shape, dtype=torch.bool), whole=False), kernel=kernel)


@pytest.mark.parametrize("kernel", ["native", "auto"])
def test_a_mask_of_numbers_is_refused_and_not_read(kernel: str) -> None:
    for whole in (False, True):
        with pytest.raises(TypeError, match="bool"):
            attention(*drawn(), mask=Own(torch.ones(3, 70), whole=whole), kernel=kernel)


def test_a_mask_whose_tensor_became_another_is_refused_and_not_read() -> None:
    mask = Allow(torch.ones(3, 70, dtype=torch.bool))
    mask.tensor.data = torch.ones(3, 70)
    with pytest.raises(TypeError):
        attention(*drawn(), mask=mask, kernel="native")
    documents = Documents(torch.zeros(70, dtype=torch.int64), torch.zeros(3, dtype=torch.int64))
    documents.query_ids.data = torch.zeros(3, dtype=torch.float16)
    with pytest.raises(TypeError):
        attention(*drawn(), mask=documents, kernel="native")


class Odd(Causal):
    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return super().allow(q_pos, k_pos) & (k_pos % 2 == 1)

    def tiles(self, frame: Any, q_block: int, k_block: int) -> Tensor:
        return Mask.tiles(self, frame, q_block, k_block)


class Short(KeyLengths):
    def block(self, *given: Any) -> Tensor:
        return super().block(*given) & (torch.arange(70) < 20)


class Added(AddedScores):
    def block(self, *given: Any) -> Tensor:
        return 2 * super().block(*given)


def test_classes_made_of_known_ones_may_change_what_they_say() -> None:
    assert_as_reference(mask=Odd())
    assert_as_reference(mask=Odd() | Prefix(4))
    assert_as_reference(mask=Short(torch.tensor([50, 60])))
    q, k, v = drawn()
    bias = Added(torch.arange(70.0) / 70)
    assert "it takes numbers in a tensor" in explain(q, k, v, bias=bias).refusals["native"][0]
    torch.testing.assert_close(
        attention(q, k, v, bias=bias), attention(q, k, v, bias=torch.arange(70.0) / 35, kernel="reference")
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("byte", [1, 2, 128, 254, 255])
def test_true_is_any_byte_that_is_not_0(name: str, byte: int) -> None:
    assert native.use_isa(name)
    allow = torch.full((3, 70), byte, dtype=torch.uint8)
    allow[:, ::2] = 0
    assert_as_reference(mask=Allow(allow.view(torch.bool)))


# Positions


@pytest.mark.parametrize("far", [LARGEST, 2**62, 2**61 + 40, -(2**61), -(2**62)])
@pytest.mark.parametrize(
    "mask",
    [
        *(Causal(), Window(None, 0), Window(0, None), Window(3, 0), Window(2**60, 2**60), ValidKeys()),
        Causal() & Window(70, 0),
    ],
    ids=str,
)
def test_positions_may_be_any_whole_numbers(mask: Mask, far: int) -> None:
    assert_as_reference(mask=mask, q_positions=torch.tensor([5, 69, far]))


def test_more_keys_than_it_can_count_are_refused() -> None:
    one = torch.zeros(1, 1, 1, 1)
    many = one.expand(1, 1, 2**31, 1)
    assert "31 bits" in explain(one, many, many).refusals["native"][0]


# What changes while it is used


@pytest.mark.parametrize("kernel", ["native", "torch", "tiled"])
@pytest.mark.parametrize("what", ["positions", "documents", "a matrix"])
def test_a_mask_that_changes_before_the_backward_pass_is_noticed(kernel: str, what: str) -> None:
    """As autograd notices it of q, k and v: the gradient would be that of another call, and nothing said."""
    q, k, v = drawn()
    at, ids, allow = torch.arange(3), torch.arange(3) % 2, torch.ones(3, 70, dtype=torch.bool)
    ways: dict[str, tuple[Tensor, dict[str, Any]]] = {
        "positions": (at, {"mask": Causal(), "q_positions": at}),
        "documents": (ids, {"mask": Documents(torch.arange(70) % 2, ids)}),
        "a matrix": (allow, {"mask": Allow(allow)}),
    }
    changing, options = ways[what]
    out = attention(q.requires_grad_(), k, v, kernel=kernel, **options)
    out.sum().backward(retain_graph=True)
    changing.copy_(torch.zeros_like(changing))
    with pytest.raises(RuntimeError, match="changed in place"):
        out.sum().backward()


class Shrinking(list):  # type: ignore[type-arg]
    """Says fewer each time that it is asked."""

    def __len__(self) -> int:
        self.asked = getattr(self, "asked", 40) - 1
        return max(1, self.asked)


def test_classes_are_counted_once() -> None:
    q, k, v = drawn()
    mass = Mass(torch.arange(70) % 4, classes=Shrinking("abcd" * 10))
    assert mass.count == mass.count
    _, seen = attention(q, k, v, observe=[mass], kernel="native")
    assert seen[mass.name].shape == (2, 4, 3, mass.count)
