"""The functions behind facts, against sums done by hand and against what the library really does."""

from __future__ import annotations

import math

import pytest
import torch

import headwise as hw
from headwise.study.computed import compute, functions


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        (
            "attention_parameters",
            {"d_model": 19, "num_heads": 5, "d_k": 3, "d_v": 2},
            19 * 15 * 2 + 19 * 10 * 2,
        ),
        ("attention_parameters", {"d_model": 6, "num_heads": 2, "bias": True}, 4 * (36 + 6)),
        ("attention_parameters", {"d_model": 12, "num_heads": 6, "num_kv_heads": 2}, 2 * 144 + 2 * 48),
        ("projection_parameters", {"d_in": 19, "d_out": 7}, 133),
        ("head_width", {"d_model": 512, "num_heads": 8}, 64),
        ("feed_forward_parameters", {"d_model": 5, "d_ff": 7}, 5 * 7 + 7 + 7 * 5 + 5),
        ("norm_parameters", {"d_model": 11}, 22),
        ("attention_blocks", {"layers": 6}, 18),
        ("visible_pairs", {"n": 4}, 1 + 2 + 3 + 4),
        ("weights_bytes", {"n": 3, "num_heads": 2, "batch": 5}, 5 * 2 * 9 * 4),
        ("cache_bytes", {"n": 7, "layers": 3, "num_kv_heads": 2, "d_k": 5}, 7 * 3 * 2 * 10 * 2),
        ("wavelength", {"pair": 0, "d_model": 8}, 2 * math.pi),
        ("wavelength", {"pair": 4, "d_model": 8}, 2 * math.pi * 10000),
        ("position_component", {"position": 3, "column": 1, "d_model": 8}, math.cos(3)),
        ("position_similarity", {"distance": 0, "d_model": 8}, 4.0),
        ("crossover_length", {"d": 512}, 512),
        ("convolution_layers", {"n": 9, "k": 3}, 4),
        ("dilated_layers", {"n": 27, "k": 3}, 3),
        ("dilated_layers", {"n": 28, "k": 3}, 4),
        ("restricted_path", {"n": 10, "r": 4}, 3),
        ("learning_rate", {"step": 4000, "d_model": 512}, 1 / math.sqrt(512 * 4000)),
        ("hours_of_steps", {"steps": 9000, "seconds": 0.4}, 1.0),
        ("days_of_steps", {"steps": 86400, "seconds": 2}, 2.0),
        ("training_cost", {"gpus": 8, "tflops": 9.5, "seconds": 43200}, 3.2832e18),
        (
            "smoothing_floor",
            {"smoothing": 0.5, "classes": 2},
            -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)),
        ),
        ("smoothed_target", {"smoothing": 0.1, "classes": 10}, 0.91),
        ("length_penalty", {"length": 1, "alpha": 0.6}, 1.0),
        ("model_parameters", {"row": "base", "vocabulary": 37000}, 44_101_632 + 37_000 * 512),
        ("layers_weights", {"row": "base"}, 18 * 4 * 512**2 + 12 * 2 * 512 * 2048),
        ("parameter_difference", {"row": "C N=8", "other": "base"}, 14_700_544),
        ("percent", {"a": 1, "b": 8}, 12.5),
        ("power", {"base": 2, "exponent": 5}, 32),
        ("exponential", {"x": 0}, 1.0),
        ("logarithm", {"x": 8, "base": 2}, 3.0),
        ("total", {"a": 2, "b": 3}, 5),
    ],
)
def test_by_hand(function: str, arguments: dict[str, object], value: float) -> None:
    assert compute(function, arguments) == pytest.approx(value, rel=1e-12)


def test_scores_of_random_queries_and_keys_vary_as_said() -> None:
    draw = torch.Generator().manual_seed(3)
    for d_k in (2, 64, 512):
        q, k = (torch.randn(20_000, d_k, generator=draw, dtype=torch.float64) for _ in range(2))
        measured = float((q * k).sum(-1).std())
        assert measured == pytest.approx(compute("score_deviation", {"d_k": d_k}), rel=0.03)


def test_table_1_counts_what_a_real_layer_multiplies() -> None:
    n, d = 7, 30
    found = hw.trace(hw.MultiHeadAttention(d, 5), torch.zeros(1, n, d))
    flops = found["scores"].flops
    assert flops == 2 * compute("self_attention_products", {"n": n, "d": d})
    cell = torch.nn.RNNCell(d, d, bias=False)
    assert cell.weight_hh.numel() * n == compute("recurrent_products", {"n": n, "d": d})
    kernel = torch.nn.Conv1d(d, d, 3, bias=False)
    assert kernel.weight.numel() * n == compute("convolution_products", {"n": n, "d": d, "k": 3})


def test_both_costs_are_equal_where_they_cross() -> None:
    n = compute("crossover_length", {"d": 30})
    assert compute("self_attention_products", {"n": n, "d": 30}) == compute(
        "recurrent_products", {"n": n, "d": 30}
    )


def test_encodings_are_the_librarys() -> None:
    table = hw.sinusoidal(6, 8, dtype=torch.float64)
    for position, column in ((0, 0), (5, 3), (4, 6)):
        arguments = {"position": position, "column": column, "d_model": 8}
        assert compute("position_component", arguments) == float(table[position, column])
    assert compute("position_similarity", {"distance": 3, "d_model": 8}) == pytest.approx(
        float(table[1] @ table[4])
    )


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("attention_params", {}, "has no function 'attention_params'; it has .*attention_parameters"),
        ("compute", {}, "has no function 'compute'"),
        ("ratio", {"a": 1}, r"ratio\(a: .*can't be called so: missing a required argument: 'b'"),
        ("ratio", {"a": 1, "b": 0}, "can't compute with"),
        ("ratio", {"a": "1", "b": 2}, "can't compute with"),
        ("attention_parameters", {"d_model": 7, "num_heads": 3}, "7"),
        ("model_parameters", {"row": "Z"}, "no row 'Z'"),
        ("fitting_vocabulary_low", {"row": "A h=1"}, "prints no number of parameters"),
    ],
)
def test_what_cannot_be_computed_is_told(function: str, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compute(function, arguments)


def test_every_function_says_what_it_gives() -> None:
    for name, function in functions().items():
        assert function.__doc__, name
        assert function.__annotations__["return"], name
