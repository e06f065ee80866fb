"""Arguments by other libraries' names are met with the name here, and signatures stay readable."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import headwise as hw
from headwise.kernels.arguments import arguments
from headwise.kernels.other_names import ATTENTION
from headwise.multihead.other_names import CALL, LAYER

Q = torch.randn(2, 3, 5, 7)
X = torch.randn(2, 5, 6)


def call(**options: Any) -> object:
    return hw.attention(Q, Q, Q, **options)


def explain(**options: Any) -> object:
    return hw.explain(Q, Q, Q, **options)


def layer(**options: Any) -> object:
    return hw.MultiHeadAttention(**{"d_model": 6, "num_heads": 3} | options)


def forward(*args: Any, **options: Any) -> object:
    return hw.MultiHeadAttention(6, 3)(*(args or (X,)), **options)


@pytest.mark.parametrize(
    ("function", "name", "advice"),
    [
        (call, "is_causal", "mask=Causal()"),
        (call, "attn_mask", "mask=Allow(attn_mask)"),
        (call, "dropout_p", "dropout=p"),
        (call, "enable_gqa", "fewer heads"),
        (explain, "is_causal", "mask=Causal()"),
        (explain, "observe", "it takes q, k, v, kernel, mask"),
        (call, "maks", "did you mean mask=?"),
        (call, "colour", "it takes q, k, v, mask"),
        (layer, "embed_dim", "d_model="),
        (layer, "kdim", "memory_dim="),
        (layer, "batch_first", "[batch, length, width]"),
        (forward, "key_padding_mask", "Allow(~mask[:, None, None, :])"),
        (forward, "key_padding_mask", "KeyLengths(lengths)"),
        (forward, "attn_mask", "Allow(~attn_mask)"),
        (forward, "need_weights", "observe=[Weights()]"),
        (forward, "is_causal", "mask=Causal()"),
    ],
)
def test_a_foreign_name_is_answered_with_ours(
    function: Callable[..., object], name: str, advice: str
) -> None:
    with pytest.raises(TypeError) as caught:
        function(**{name: True})
    assert f"has no {name}=: " in str(caught.value)
    assert advice in str(caught.value)


def test_query_key_value_by_place() -> None:
    with pytest.raises(TypeError, match=r"2 positional arguments \(x, memory\), got 3: .*values=v"):
        forward(X, X, X)
    with pytest.raises(TypeError, match=r"MultiHeadAttention\(\) takes 2 .*\(d_model, num_heads\), got 3"):
        hw.MultiHeadAttention(6, 3, 0.1)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("names", "function"),
    [
        (ATTENTION, hw.attention),
        (LAYER, hw.MultiHeadAttention.__init__),
        (CALL, hw.MultiHeadAttention.forward),
    ],
)
def test_the_names_are_really_foreign_and_the_signature_is_the_function_s(
    names: dict[str, str], function: Callable[..., object]
) -> None:
    parameters = inspect.signature(function).parameters
    assert not names.keys() & parameters.keys()
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())


def test_required_arguments_by_name_or_place() -> None:
    @arguments(missing="give both")
    def added(a: int, b: int, *, c: int = 0) -> int:
        return a + b + c

    assert (added(2, 3), added(2, b=3), added(a=2, b=3, c=5)) == (5, 5, 10)
    with pytest.raises(TypeError, match=r"added\(\) lacks b: give both"):
        added(2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"multiple values for argument 'a'"):
        added(2, 3, a=5)  # type: ignore[misc]
