"""What the layer refuses, with the names and the way out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headwise.cache import GrowingCache
from headwise.masks import Allow
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary
from plain_layers import D_K, D_V, F64, HEADS, K_IN, OUT, Q_IN, V_IN, build, draw

# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 0}, "d_model=0, num_heads=6"),
        ({"num_kv_heads": 4}, r"num_heads=6 is no multiple of num_kv_heads=4.*\[1, 2, 3, 6\]"),
        ({"d_k": None}, "d_model=29 doesn't divide into num_heads=6.*pass d_k= and d_v="),
        ({"d_v": 0}, "d_k=13 and d_v=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"input_dim": 0}, "input_dim=0: must be 1 or more"),
        ({"output_dim": -1}, "output_dim=-1"),
        ({"softcap": 0.0}, "softcap=0.0"),
        ({"scale": float("nan")}, "scale=nan"),
        (
            {"score_bias": ALiBi(torch.nn.Parameter(torch.ones(HEADS)))},
            r"ALiBi over a Parameter.*missing in the layer's parameters\(\).*pass a module",
        ),
        ({"rotary": Rotary(6)}, r"rotary is for d_k=6 but the layer has d_k=13: use Rotary\(13\)"),
    ],
)
def test_errors_of_building(arguments: dict[str, Any], message: str) -> None:
    given = {"d_model": 29, "num_heads": HEADS, "d_k": D_K, "d_v": D_V, **arguments}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m(torch.zeros(2, 3, 4)),
            r"x\.shape=\(2, 3, 4\): expected \[\*batch, length, 3\].*input_dim=4",
        ),
        (lambda m: m(torch.zeros(3)), r"x\.shape=\(3,\)"),
        (lambda m: m(torch.zeros(2, 3, 3)), "reads keys from width memory_dim=5.*pass memory="),
        (lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 3)), r"memory\.shape=\(2, 3, 3\).*memory_dim=3"),
        (lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5)), "value_dim=7: pass values="),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(3, 3, 5), values=torch.zeros(3, 3, 7)),
            r"memory\.shape=\(3, 3, 5\) and x\.shape=\(2, 3, 3\): their batch dimensions must be equal",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5), values=torch.zeros(2, 4, 7)),
            r"values\.shape=\(2, 4, 7\) and memory\.shape=\(2, 3, 5\): all but their width",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5), values=torch.zeros(2, 3, 5)),
            r"values\.shape=.*value_dim=5",
        ),
        (lambda m: m(torch.zeros(2, 3, 3), values=torch.zeros(2, 3, 7)), "values= given without memory="),
        (
            lambda m: m(torch.zeros(2, 3, 3), memory_positions=torch.arange(3)),
            "memory_positions= given without memory=",
        ),
        (lambda m: m.load_fused(torch.zeros(2, 3)), "differ, so the projections don't make one matrix"),
    ],
)
def test_errors_of_calling(call: Any, message: str) -> None:
    module = MultiHeadAttention(29, HEADS, input_dim=Q_IN, memory_dim=K_IN, value_dim=V_IN, d_k=D_K, d_v=D_V)
    with pytest.raises(ValueError, match=message):
        call(module)


def test_errors_of_types() -> None:
    module = build(input_dim=3)
    with pytest.raises(TypeError, match=r"x is torch.int64 \(2, 5, 3\).*nn.Embedding.*x.float"):
        module(torch.ones(2, 5, 3, dtype=torch.int64))
    other = torch.float32 if module.q_proj.weight.dtype == torch.float64 else torch.float64
    with pytest.raises(TypeError, match=rf"x is {other} and the layer's weights are .*layer.to\({other}\)"):
        module(torch.ones(2, 5, 3, dtype=other))
    memory = torch.ones(2, 7, module.memory_dim, dtype=other)
    with pytest.raises(TypeError, match=rf"memory is {other} and"):
        module(torch.ones(2, 5, 3, dtype=module.q_proj.weight.dtype), memory)
    with torch.autocast("cpu", torch.bfloat16):
        module.float()(torch.ones(2, 5, 3).bfloat16())  # autocast converts


def test_other_errors() -> None:
    module = MultiHeadAttention(12, 2)
    x = torch.zeros(2, 3, 12)
    with pytest.raises(ValueError, match=r"mask=KeyLengths\(lengths\)"):
        module(x, lengths=torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="the cache knows the positions"):
        module(x, cache=GrowingCache(), positions=torch.arange(3))
    with pytest.raises(TypeError, match="cache is a dict"):
        module(x, cache={})
    with pytest.raises(TypeError, match="causal"):
        module(x, causal=True)
    with pytest.raises(TypeError, match="x is a list"):
        module([[1.0]])
    for wrong, message in (
        ("alibi", "score_bias is a str"),
        (torch.zeros(2, 3, 3), r"AddedScores\(tensor\)"),
    ):
        with pytest.raises(TypeError, match=message):
            MultiHeadAttention(12, 2, score_bias=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rotary is a bool.*Rotary\(6\)"):
        MultiHeadAttention(12, 2, rotary=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bias is a str"):
        MultiHeadAttention(12, 2, score_bias=ALiBi.for_heads(2))(x, bias="none")
    turning = MultiHeadAttention(12, 2, rotary=Rotary(6))
    for positions in (torch.arange(4), torch.zeros(3, 3, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"positions.shape=.*must be \[3\]"):
            turning(x, positions=positions)
    with pytest.raises(TypeError, match="positions is list"):
        turning(x, positions=[0, 1, 2])
    with pytest.raises(ValueError, match=r"memory_positions.shape=\[3\]: must be \[5\]"):
        turning(x, torch.zeros(2, 5, 12), memory_positions=torch.arange(3))
    biased, before = MultiHeadAttention(12, 2, projection_bias=True), torch.zeros(36, 12)
    biased.load_fused(before)
    with pytest.raises(ValueError, match="expected 36 rows"):  # and nothing has been written
        biased.load_fused(torch.ones(36, 12), torch.zeros(35))
    assert torch.equal(biased.fused_weight()[0], before)
    biased.q_proj = torch.nn.Sequential(biased.q_proj)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="q_proj is a Sequential"):
        biased.fused_weight()
    with pytest.raises(TypeError, match="heads"):
        MultiHeadAttention(12, 2, heads=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"expected 36 rows.*transposed=True"):
        module.load_fused(torch.zeros(24, 12))
    with pytest.raises(
        ValueError, match=r"\(12, 36\) as \[rows, width\]: expected width 12.*transposed=True"
    ):
        module.load_fused(torch.zeros(12, 36))
    with pytest.raises(ValueError, match="projection_bias=True"):
        module.load_fused(torch.zeros(36, 12), torch.zeros(36))
    with pytest.raises(ValueError, match="layout='rows'"):
        module.load_fused(torch.zeros(36, 12), layout="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layout='rows'"):
        module.fused_weight("rows")  # type: ignore[arg-type]


def test_empty_mask_of_one_query() -> None:
    """One query, one key, hidden: the heads give 0."""
    module = build()
    y = module(draw(1, 1, Q_IN), mask=Allow(torch.tensor([[False]])))
    assert torch.equal(y, torch.zeros(1, 1, OUT, dtype=F64))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"d_model": 12.0}, r"d_model=12\.0 is a float: expected a whole number"),
        ({"num_heads": "3"}, "num_heads='3' is a str"),
        ({"num_heads": True}, "num_heads=True is a bool"),
        ({"num_kv_heads": 1.5}, r"num_kv_heads=1\.5 is a float"),
        ({"d_k": 4.0}, r"d_k=4\.0 is a float"),
        ({"output_dim": 6.0}, r"output_dim=6\.0 is a float"),
        ({"dropout": "x"}, "dropout='x' is a str, and a number is expected: the share that is dropped"),
        ({"scale": "x"}, "scale='x' is a str, and a number is expected"),
        ({"scale": torch.ones(())}, "scale is a tensor.*gradient would be lost"),
        ({"softcap": True}, "softcap=True is a bool"),
        ({"score_bias": ALiBi}, r"score_bias is the class ALiBi.*ALiBi\.for_heads\(num_heads\)"),
        ({"rotary": Rotary}, r"rotary is the class Rotary: .*Rotary\(4\)"),
    ],
)
def test_mistaken_types_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        MultiHeadAttention(**{"d_model": 12, "num_heads": 3} | options)


def test_a_class_as_cache_is_named() -> None:
    with pytest.raises(
        TypeError, match=r"cache is the class GrowingCache.*write GrowingCache\(\.\.\.\) once"
    ):
        MultiHeadAttention(12, 3)(torch.zeros(2, 5, 12), cache=GrowingCache)  # type: ignore[arg-type]
