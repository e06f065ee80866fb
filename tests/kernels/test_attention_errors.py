"""Mistakes raise before anything is computed, and say the values, the rule and the fix."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.attention import attention, explain, problem
from headwise.kernels import KERNELS
from headwise.masks import Allow, Causal, Documents, KeyLengths
from headwise.observers import Entropy, Weights
from headwise.positions import AddedScores, ALiBi, RelativeBuckets

NAN, INF = float("nan"), float("inf")


def t(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def q() -> Tensor:
    return t(2, 6, 5, 3)


def kv() -> Tensor:
    return t(2, 3, 7, 3)


# q, k, v, the kind of error, and what the message holds
TENSORS: dict[str, tuple[Any, Any, Any, type[Exception], tuple[str, ...]]] = {
    "no tensor": ([1.0], kv(), kv(), TypeError, ("q is a list", "[*batch, heads, length, d]")),
    "none for values": (q(), kv(), None, TypeError, ("v is a NoneType",)),
    "no heads": (t(5, 3), kv(), kv(), ValueError, ("q.shape=[5, 3]", "2 dimensions", "q.unsqueeze(-3)")),
    "integers": (q().long(), kv(), kv(), TypeError, ("torch.int64", "float32", "q.float()")),
    "complex": (q().cfloat(), kv(), kv(), TypeError, ("torch.complex64", "q.float()")),
    "mixed types": (q(), kv().half(), kv(), TypeError, ("torch.float32, torch.float16", "k.to(q.dtype)")),
    "mixed devices": (q(), t(2, 3, 7, 3, device="meta"), kv(), ValueError, ("cpu, meta", "k.to(q.device)")),
    "d_k": (q(), t(2, 3, 7, 4), kv(), ValueError, ("d_k differs", "[2, 6, 5, 3]", "[2, 3, 7, 4]", "equal")),
    "k_len": (q(), kv(), t(2, 3, 8, 3), ValueError, ("k_len differs", "[2, 3, 7, 3]", "[2, 3, 8, 3]")),
    "kv_heads": (q(), kv(), t(2, 2, 7, 3), ValueError, ("kv_heads differs", "[2, 2, 7, 3]")),
    "indivisible heads": (
        q(),
        t(2, 4, 7, 3),
        t(2, 4, 7, 3),
        ValueError,
        ("heads=6", "kv_heads=4", "multiple of kv_heads", "i // (heads // kv_heads)"),
    ),
    "more key heads than heads": (t(2, 3, 5, 3), t(2, 6, 7, 3), t(2, 6, 7, 3), ValueError, ("heads=3", "=6")),
    "no key heads": (q(), t(2, 0, 7, 3), t(2, 0, 7, 3), ValueError, ("heads=6", "kv_heads=0")),
    "batches": (
        q(),
        t(4, 3, 7, 3),
        t(4, 3, 7, 3),
        ValueError,
        ("k.shape=[4, 3, 7, 3]", "batch dimensions [4]", "broadcast", "[2]"),
    ),
    "more batch dimensions than q": (q(), t(1, 2, 3, 7, 3), t(1, 2, 3, 7, 3), ValueError, ("[1, 2]", "[2]")),
    "length without width": (t(2, 6, 5, 0), t(2, 3, 7, 0), kv(), ValueError, ("d_k is 0", "scale=1.0")),
}


@pytest.mark.parametrize("name", list(TENSORS))
def test_tensors(name: str) -> None:
    *tensors, kind, words = TENSORS[name]
    with pytest.raises(kind) as caught:
        attention(*tensors)
    says(caught, words)
    with pytest.raises(kind):
        explain(*tensors)


OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = {
    "bool tensor as mask": (
        {"mask": t(5, 7, dtype=torch.bool)},
        TypeError,
        ("torch.bool", "[5, 7]", "Allow(mask)", "Allow(~mask)", "MultiheadAttention"),
    ),
    "float tensor as mask": (
        {"mask": t(5, 7)},
        TypeError,
        ("torch.float32", "bias=mask", "Allow(mask.bool())"),
    ),
    "int tensor as mask": (
        {"mask": t(5, 7, dtype=torch.int64)},
        TypeError,
        ("torch.int64", "integers", "Allow(mask.bool())"),
    ),
    "a word as mask": ({"mask": "causal"}, TypeError, ("mask is a str", "Causal()", "&, | and ~")),
    "a class as mask": ({"mask": Causal}, TypeError, ("class Causal", "write Causal(")),
    "bool as bias": ({"bias": t(5, 7, dtype=torch.bool)}, TypeError, ("torch.bool", "mask=Allow(tensor)")),
    "int as bias": ({"bias": t(5, 7, dtype=torch.int64)}, TypeError, ("torch.int64", "Allow(tensor.bool())")),
    "zeros and ones as bias": (
        {"bias": torch.tensor([1.0, 0, 1, 0, 1, 0, 1])},
        ValueError,
        ("only 0 and 1", "mask=Allow(tensor == 1)", "check_values=False"),
    ),
    "a list as bias": ({"bias": [[0.0]]}, TypeError, ("bias is a list", "[*batch, heads, q_len, k_len]")),
    "bias of another shape": ({"bias": t(2, 5, 7)}, ValueError, ("(2, 5, 7)", "(2, 6, 5, 7)", "broadcast")),
    "bias elsewhere": ({"bias": t(5, 7, device="meta")}, ValueError, ("meta", "cpu", "bias.to(q.device)")),
    "slopes": ({"bias": ALiBi.for_heads(4)}, ValueError, ("4 slopes", "6 query heads", "ALiBi.for_heads(6)")),
    "table": ({"bias": RelativeBuckets(t(32, 3))}, ValueError, ("(32, 3)", "6 query heads", "6 columns")),
    "one of two biases": ({"bias": ALiBi.for_heads(6) + AddedScores(t(3, 7))}, ValueError, ("(3, 7)",)),
    "scale nan": ({"scale": NAN}, ValueError, ("scale=nan", "finite", "1 / sqrt(d_k)")),
    "scale inf": ({"scale": INF}, ValueError, ("scale=inf", "finite")),
    "softcap 0": ({"softcap": 0.0}, ValueError, ("softcap=0.0", "positive", "None")),
    "softcap below 0": ({"softcap": -2.0}, ValueError, ("softcap=-2.0",)),
    "softcap nan": ({"softcap": NAN}, ValueError, ("softcap=nan",)),
    "softcap inf": ({"softcap": INF}, ValueError, ("softcap=inf",)),
    "all dropped": ({"dropout": 1.0}, ValueError, ("dropout=1.0", "0 <= dropout < 1")),
    "dropout below 0": ({"dropout": -0.1}, ValueError, ("dropout=-0.1",)),
    "dropout nan": ({"dropout": NAN}, ValueError, ("dropout=nan",)),
    "dropout in per cent": ({"dropout": 10}, ValueError, ("dropout=10", "share")),
    "dropout as text": ({"dropout": "x"}, TypeError, ("dropout='x' is a str", "0 <= dropout < 1")),
    "a switch as dropout": ({"dropout": True}, TypeError, ("dropout=True is a bool",)),
    "scale as text": ({"scale": "x"}, TypeError, ("scale='x' is a str", "1 / sqrt(d_k)")),
    "a learned scale": ({"scale": t()}, TypeError, ("scale is a tensor", "gradient", "float(scale)")),
    "a switch as softcap": ({"softcap": True}, TypeError, ("softcap=True is a bool", "None for no cap")),
    "the class as bias": ({"bias": ALiBi}, TypeError, ("bias is the class ALiBi", "ALiBi.for_heads(6)")),
    "align": ({"align": "left"}, ValueError, ("'left'", '"end"', '"start"')),
    "sinks of another number": ({"sinks": t(3)}, ValueError, ("[3]", "[heads] = [6]")),
    "sinks of another shape": ({"sinks": t(6, 1)}, ValueError, ("[6, 1]",)),
    "sinks of integers": ({"sinks": t(6, dtype=torch.int64)}, ValueError, ("torch.int64", "float")),
    "a number as sinks": ({"sinks": 0.0}, ValueError, ("sinks is float", "[6]")),
    "sinks elsewhere": ({"sinks": t(6, device="meta")}, ValueError, ("meta", "sinks.to(q.device)")),
    "positions of floats": ({"q_positions": t(5)}, TypeError, ("q_positions", "float32", "int64", "[5]")),
    "positions of int32": ({"k_positions": t(7).int()}, TypeError, ("k_positions", "int32", "int64", "[7]")),
    "a list as positions": ({"k_positions": list(range(7))}, TypeError, ("k_positions is list", "int64")),
    "too few positions": (
        {"k_positions": t(5).long()},
        ValueError,
        ("k_positions.shape=[5]", "[2, 7]"),
    ),
    "positions of heads": ({"q_positions": t(2, 6, 5).long()}, ValueError, ("[2, 6, 5]", "[2, 5]")),
    "positions elsewhere": (
        {"q_positions": t(5, dtype=torch.int64, device="meta")},
        ValueError,
        ("q_positions is on meta", "cpu", "q_positions.to('cpu')"),
    ),
    "length beyond the keys": (
        {"mask": KeyLengths(torch.tensor([7, 8]))},
        ValueError,
        ("k_len = 7", "entry 1 has 8", "clamp(max=7)"),
    ),
    "lengths of another batch": (
        {"mask": KeyLengths(torch.tensor([1, 2, 3]))},
        ValueError,
        ("[3]", "batch dimensions [2]"),
    ),
    "documents too short": (
        {"mask": Documents(torch.tensor([0, 0, 1, 1]))},
        ValueError,
        ("positions 0 to 3", "position 6", "one document number per position"),
    ),
    "pairs of another shape": (
        {"mask": Allow(t(7, 5).bool())},
        ValueError,
        ("[7, 5]", "[2, 6, 5, 7]", "tensor.mT"),
    ),
    "padding without its dimensions": (
        {"mask": Allow(t(2, 7).bool())},
        ValueError,
        ("[2, 7]", "tensor[:, None, None, :]"),
    ),
    "mask elsewhere": (
        {"mask": Allow(torch.ones(5, 7, dtype=torch.bool, device="meta"))},
        ValueError,
        ("meta", "cpu", "mask.to('cpu')"),
    ),
}


@pytest.mark.parametrize("name", list(OPTIONS))
def test_options(name: str) -> None:
    options, kind, words = OPTIONS[name]
    with pytest.raises(kind) as caught:
        attention(q(), kv(), kv(), **options)
    says(caught, words)


@pytest.mark.parametrize(
    ("observe", "kind", "words"),
    [
        ([Entropy], TypeError, ("class Entropy", "Entropy()")),
        (["entropy"], TypeError, ("observers", "'entropy'")),
        ([Entropy(), Entropy()], ValueError, ("two observers", "entropy")),
        ([Weights(rows=[5])], ValueError, ("rows", "5")),
        ([Weights(heads=[6])], ValueError, ("heads", "6")),
    ],
)
def test_observers(observe: list[Any], kind: type[Exception], words: tuple[str, ...]) -> None:
    with pytest.raises(kind) as caught:
        attention(q(), kv(), kv(), observe=observe)
    says(caught, words)


@pytest.mark.parametrize(
    "name", ["attn_mask", "is_causal", "causal", "dropout_p", "enable_gqa", "need_weights"]
)
def test_unknown_arguments_are_refused(name: str) -> None:
    for function in (attention, problem, explain):
        with pytest.raises(TypeError, match=name):
            function(q(), kv(), kv(), **{name: None})


def test_options_have_names() -> None:
    with pytest.raises(TypeError, match="positional"):
        attention(q(), kv(), kv(), Causal())  # type: ignore[misc]


def test_nothing_is_computed_before_a_refusal() -> None:
    """The generator has not moved, and an observer's mistake is found before attention is run."""
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    for options in ({"align": "left"}, {"mask": KeyLengths(8)}, {"sinks": t(3)}, {"bias": t(3, 3)}):
        with pytest.raises(ValueError, match=r"."):
            attention(q(), kv(), kv(), dropout=0.5, generator=generator, **options)
    assert torch.equal(generator.get_state(), before)


def says(caught: pytest.ExceptionInfo[Exception], words: tuple[str, ...]) -> None:
    text = str(caught.value)
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    assert re.search(r"[a-z]", text)


# What is empty is answered, not refused


EMPTY = {
    "no batch entries": ((0, 6, 5, 3), (0, 3, 7, 3), (0, 3, 7, 2)),
    "no batch entries in one of two": ((2, 0, 6, 5, 3), (2, 0, 3, 7, 3), (2, 0, 3, 7, 2)),
    "no queries": ((2, 6, 0, 3), (2, 3, 7, 3), (2, 3, 7, 2)),
    "no keys": ((2, 6, 5, 3), (2, 3, 0, 3), (2, 3, 0, 2)),
    "nothing at all": ((2, 6, 0, 3), (2, 3, 0, 3), (2, 3, 0, 2)),
    "no heads": ((2, 0, 5, 3), (2, 0, 7, 3), (2, 0, 7, 2)),
    "values of no width": ((2, 6, 5, 3), (2, 3, 7, 3), (2, 3, 7, 0)),
}


@pytest.mark.parametrize("mask", [None, Causal(), KeyLengths(0), Causal() & ~KeyLengths(0)])
@pytest.mark.parametrize("kernel", ["auto", *(kernel.name for kernel in KERNELS if kernel.name != "flex")])
@pytest.mark.parametrize("name", list(EMPTY))
def test_empty_sizes(name: str, kernel: str, mask: Any) -> None:
    """Zero where there are no keys, empty where there are no queries; gradients likewise."""
    q_shape, k_shape, v_shape = EMPTY[name]
    if kernel == "torch":
        v_shape = (*v_shape[:-1], 3)
    tensors = [torch.randn(shape, requires_grad=True) for shape in (q_shape, k_shape, v_shape)]
    out = attention(*tensors, mask=mask, kernel=kernel)
    assert out.shape == (*q_shape[:-1], v_shape[-1])
    if k_shape[-2] == 0:
        assert (out == 0).all()
    grads = torch.autograd.grad(out.sum(), tensors, allow_unused=True, materialize_grads=True)
    assert all(g.shape == x.shape and g.isfinite().all() for g, x in zip(grads, tensors, strict=True))


def test_scores_of_no_width_are_all_equal() -> None:
    """d_k = 0: every score is 0, so the output is the mean of the values."""
    v = torch.randn(2, 3, 7, 2)
    for kernel in ("auto", "tiled", "reference"):
        out = attention(t(2, 6, 5, 0), t(2, 3, 7, 0), v, scale=1.0, kernel=kernel)
        want = v.mean(-2, keepdim=True).repeat_interleave(2, 1).expand(2, 6, 5, 2)
        torch.testing.assert_close(out, want)
