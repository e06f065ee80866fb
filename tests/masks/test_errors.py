"""Each refusal names the values, the rule and the fix, before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from headwise.masks import Allow, Causal, Documents, Frame, KeyLengths, Mask, Prefix, Window

FRAME = Frame.of((2,), 3, 5, 7)
ELSEWHERE = Frame.of((2,), 3, 5, 7, device="meta")


def says(caught: pytest.ExceptionInfo[Exception], *words: str) -> None:
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KeyLengths([3, 7.0]), ["KeyLengths", "list", "7.0", "float"]),  # type: ignore[list-item]
        (lambda: Prefix((3, True)), ["Prefix", "takes ints", "True", "bool"]),
        (lambda: KeyLengths("3"), ["KeyLengths", "str", "'3'"]),  # type: ignore[arg-type]
        (lambda: Window(128), ["Window(128, 0)", "Window(127, 0) is 128 keys", "from_huggingface"]),
        (lambda: Window(after=0), ["before and after", "Window(n - 1, 0)"]),
        (lambda: Window(), ["before and after"]),
        (lambda: KeyLengths(3.0), ["KeyLengths", "float"]),  # type: ignore[arg-type]
        (lambda: KeyLengths(True), ["KeyLengths", "bool"]),
        (lambda: KeyLengths(torch.tensor([3.0, 7.0])), ["float32", "[2]", "lengths.long()"]),
        (
            lambda: KeyLengths(torch.ones(2, 7, dtype=torch.bool)),
            ["bool", "[2, 7]", "Allow(", "valid.sum(-1)"],
        ),
        (lambda: Prefix(torch.tensor([0.5])), ["Prefix", "float32", "lengths.long()"]),
        (lambda: Documents([0, 0, 1]), ["ids", "list", "torch.tensor([0, 0, 1])"]),  # type: ignore[arg-type]
        (lambda: Documents(None), ["ids", "NoneType"]),  # type: ignore[arg-type]
        (lambda: Documents(torch.zeros(7)), ["ids", "float32", "[7]", ".long()"]),
        (lambda: Documents(torch.zeros(7).bool()), ["ids", "bool", "[7]"]),
        (lambda: Documents(torch.zeros(7).long(), torch.zeros(5)), ["query_ids", "float32", "[5]"]),
        (lambda: Allow([[True]]), ["Allow", "list"]),  # type: ignore[arg-type]
        (lambda: Allow.from_ignored(torch.zeros(5, 7)), ["float32", "[5, 7]", "bool"]),
        (lambda: Causal() & torch.ones(5, 7).bool(), ["`&`", "bool", "[5, 7]", "Allow(tensor)"]),  # type: ignore[operator]
        (lambda: torch.ones(5, 7).bool() | Causal(), ["`|`", "bool", "[5, 7]", "Allow(tensor)"]),
        (lambda: Causal() | None, ["`|`", "None"]),  # type: ignore[operator]
        (lambda: 3 & Causal(), ["`&`", "int", "3"]),
        (lambda: Causal() and Window(3, 0), ["causal", "&, | and ~", "is None"]),
        (lambda: not Causal(), ["neither true nor false"]),
    ],
)
def test_wrong_types(make: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    says(caught, *words)


# pytorch#170400, #120668, #21518: integers and zeros and ones mean different things to different calls
@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.ones(5, 7, dtype=torch.int64), ["int64", "[5, 7]", "tensor.bool()", "~tensor.bool()"]),
        (torch.ones(5, 7, dtype=torch.uint8), ["uint8", "tensor.bool()", "MultiheadAttention"]),
        (torch.eye(5, 7), ["only 0 and 1", "tensor.bool()", "~tensor.bool()", "MultiheadAttention"]),
        (torch.zeros(5, 7, dtype=torch.float16), ["only 0 and 1", "float16"]),
        (
            torch.zeros(5, 7).masked_fill(torch.eye(5, 7) > 0, float("-inf")),
            ["0 and -inf", "tensor == 0", "bias="],
        ),
        (torch.zeros(5, 7).masked_fill(torch.eye(5, 7) > 0, torch.finfo().min), ["near it", "bias=tensor"]),
        (torch.linspace(-1, 1, 35).view(5, 7), ["bias=", "float32"]),
        (torch.zeros(0, 7), ["float32", "[0, 7]", "bias="]),
        (torch.empty(5, 7, device="meta"), ["float32", "bias="]),
    ],
)
def test_allow_refuses_numbers(tensor: torch.Tensor, words: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        Allow(tensor)
    says(caught, "True means may attend", *words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KeyLengths(-1), ["KeyLengths", "-1", "0 or more"]),
        (lambda: KeyLengths(torch.tensor([3, -2])), ["batch entry 1 has -2", "0 or more"]),
        (lambda: Prefix(torch.tensor([[1, 2], [-3, 4]])), ["Prefix", "batch entry (1, 0) has -3"]),
        (lambda: KeyLengths(torch.full((11,), -5)), ["0 has -5", "7 has -5", "and 3 more"]),
        (lambda: Documents(torch.tensor(3)), ["a number per position", "[length]"]),
        (lambda: Documents.from_lengths(torch.tensor([[3]])), ["[documents]"]),
        (lambda: Documents.from_cu_seqlens(torch.tensor(3)), ["[documents + 1]"]),
        (lambda: Documents.from_lengths(torch.tensor([2, -3])), ["0 or more", "[2, -3]"]),
        (lambda: Documents.from_cu_seqlens(torch.tensor([3, 5])), ["from 0", "[3, 5]"]),  # lengths
        (lambda: Documents.from_cu_seqlens(torch.tensor([0, 5, 3])), ["goes up", "[0, 5, 3]"]),
    ],
)
def test_wrong_values(make: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        make()
    says(caught, *words)


ids = torch.zeros(7, dtype=torch.int64)
UNFIT: list[tuple[Mask, list[str]]] = [
    (KeyLengths(8), ["KeyLengths", "k_len = 7", "the length is 8", "clamp(max=7)"]),
    (KeyLengths(torch.tensor([3, 8])), ["k_len = 7", "batch entry 1 has 8", "clamp(max=7)"]),
    (KeyLengths(torch.tensor([1, 2, 3])), ["lengths", "[3]", "[2]", "one value per batch entry"]),
    (KeyLengths(torch.ones(2, 2, dtype=torch.int64)), ["[2, 2]", "[2]"]),
    (Documents(ids[:5]), ["0 to 4", "position 6", "one document number per position"]),
    (Documents(ids.expand(3, 7)), ["[3]", "[2]"]),
    (Documents(ids, ids[:4]), ["query_ids has 4", "5 queries"]),
    (Documents(ids, ids[:5].expand(3, 5)), ["query_ids", "[3]", "[2]"]),
    (Allow(torch.ones(7, 5).bool()), ["[7, 5]", "[2, 3, 5, 7]", "tensor.mT"]),
    (Allow(torch.ones(2, 7).bool()), ["[2, 7]", "tensor[:, None, None, :]"]),
    (Allow(torch.ones(2, 5, 7).bool()), ["[2, 5, 7]", "tensor[:, None]"]),
    (Allow(torch.ones(6, 5, 7).bool()), ["[6, 5, 7]", "unflatten(0, (2, 3))"]),
    (Allow(torch.ones(1, 2, 3, 5, 7).bool()), ["[1, 2, 3, 5, 7]", "[*batch, heads, q_len, k_len]"]),
    (Allow(torch.ones(4, 7).bool()), ["[4, 7]", "[2, 3, 5, 7]"]),
]


@pytest.mark.parametrize(("mask", "words"), UNFIT, ids=[repr(mask) for mask, _ in UNFIT])
def test_what_does_not_fit_the_call(mask: Mask, words: list[str]) -> None:
    joins = (mask, Causal() & mask, mask | Causal(), ~mask, ~(Causal() & mask))
    for whole in joins:  # composed masks pass the question on
        with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
            whole.check(FRAME)
        says(caught, *words)


@pytest.mark.parametrize(
    "mask",
    [
        KeyLengths(torch.tensor([3, 7])),
        Documents(ids),
        Documents(torch.zeros(7, dtype=torch.int64, device="meta"), ids[:5]),
        Allow(torch.ones(5, 7).bool()),
    ],
    ids=repr,
)
def test_another_device(mask: Mask) -> None:
    with pytest.raises(ValueError, match="is on") as caught:
        mask.check(ELSEWHERE)
    says(caught, "cpu", "meta", "mask.to('meta')")
    mask.to("meta").check(ELSEWHERE)


def test_what_fits() -> None:
    for mask in (
        KeyLengths(0) & KeyLengths(7) & KeyLengths(torch.tensor(7)) & KeyLengths(torch.tensor([0, 7])),
        Prefix(torch.tensor([7])) | Documents(torch.zeros(2, 19, dtype=torch.int64)),
        Documents(ids, torch.zeros(1, 5, dtype=torch.int32)),
        KeyLengths(torch.zeros(1, dtype=torch.int64)),
    ):
        mask.check(FRAME)


def test_lengths_go_with_the_positions_of_a_cache() -> None:
    """Seven slots of a ring hold the keys 8 to 14: a length of 15 is not beyond them."""
    ring = Frame.of((2,), 3, 1, 7, q_pos=torch.tensor([14]), k_pos=torch.tensor([14, 8, 9, 10, 11, 12, 13]))
    KeyLengths(15).check(ring)
    with pytest.raises(ValueError, match="16"):
        KeyLengths(16).check(ring)


def test_no_batch_dimension() -> None:
    frame = Frame.of((), 3, 5, 7)
    KeyLengths(torch.tensor(5)).check(frame)
    with pytest.raises(ValueError, match=r"\[1\].*\[\]"):
        KeyLengths(torch.tensor([5])).check(frame)


def test_a_prefix_may_be_longer_than_the_keys_so_far() -> None:
    mask, whole = Causal() | Prefix(5), Frame.of((), 1, 7, 7)
    first = Frame.of((), 1, 3, 3)  # the first chunk of a sequence, inside the prefix
    mask.check(first)
    assert torch.equal(mask.dense(first), mask.dense(whole)[..., :3, :3])
