"""Rows held to aims: what is reached, what the CPU could do, and that both sides compute the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from benchmarks import aims, limits, native_models, training
from benchmarks.aims import Aim, Held, claims, products, times_as_fast, times_the_time
from benchmarks.exactness import GRADIENTS, OUTPUT, errors
from benchmarks.native import PROGRAM, cases, pairs
from benchmarks.native_models import STEPS
from benchmarks.program import Result
from torch import nn

from headwise.kernels.native_build import native
from headwise.models import Transformer

compiled = pytest.mark.skipif(native is None, reason="no compiled kernel")


@pytest.mark.parametrize(
    ("aim", "cell", "reached"),
    [
        (Aim("x", lambda r: 2.396, least=2.4), "2.40 (≥ 2.4)", True),  # as it is printed
        (Aim("x", lambda r: 2.394, least=2.4), "2.39 (≥ 2.4)", False),
        (Aim("x", lambda r: 1.084, most=1.08), "1.08 (≤ 1.08)", True),
        (Aim("x", lambda r: 1.086, most=1.08), "1.09 (≤ 1.08)", False),
        (Aim("x", lambda r: 74.6, least=75, form=".0f"), "75 (≥ 75)", True),
        (Aim("x", lambda r: 7.0), "7.00", None),
    ],
)
def test_an_aim_is_reached_by_the_printed_number(aim: Aim, cell: str, reached: bool | None) -> None:
    found = aim.find(Result(("a",)))
    assert found is not None
    assert (found.cell, found.reached) == (cell, reached)


def test_what_cant_be_measured_is_neither_reached_nor_missed() -> None:
    assert times_as_fast("SDPA", 2).find(Result(("a",))) is None
    assert Held(("a", "b")).reached == "-"
    assert claims([Held(("a", "b"))]) == []


def test_shares_of_the_peak_and_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    # 50 operations in the time in which 100 are possible; SDPA takes twice as long.
    monkeypatch.setattr(limits, "operations", lambda dtype: 100.0)
    seconds = {"headwise": 1e-9, "SDPA": 2e-9, "peak": 1e-9}
    result = Result(("a",), seconds, {"SDPA": 0.5, "peak": 1.0})
    found = {aim.heading: aim.find(result) for aim in products(50, torch.float32, 60, "SDPA")}
    cells = {heading: one.cell for heading, one in found.items() if one is not None}
    assert cells == {
        "GFLOP/s": "50",
        "peak, GFLOP/s": "100",
        "% of peak": "50 (≥ 60)",
        "SDPA, % of peak": "25",
    }
    (fast, slow) = times_as_fast("SDPA", 2).find(result), times_the_time("SDPA", 0.4).find(result)
    assert fast is not None
    assert slow is not None
    assert (fast.cell, fast.reached) == ("2.00 (≥ 2)", True)
    assert (slow.cell, slow.reached) == ("0.50 (≤ 0.4)", False)


def test_tables_say_which_rows_miss_what_and_claims_how_many() -> None:
    good = Aim("x", lambda r: 3.0, least=2).find(Result(("a",)))
    bad = Aim("y", lambda r: 1.0, least=2).find(Result(("a",)))
    assert good is not None
    assert bad is not None
    rows = [
        Held(("forward", "float32", "512", "1"), {"headwise": 0.5, "SDPA": 1.5}, found={"x": good}),
        Held(("forward", "float32", "128", "8"), {"headwise": 0.5}, found={"x": good, "y": bad}),
        Held(("memory", "output", "16", "1"), found={"y": bad}),
    ]
    first, second = PROGRAM.tables(rows, 1)
    assert first.columns == ("what", "length", "batch", "headwise, ms", "SDPA, ms", "x", "y", "reached")
    assert first.rows[0] == ("float32", "512", "1", "500", "1500", "3.00 (≥ 2)", "-", "yes")
    assert first.rows[1] == ("float32", "128", "8", "500", "-", "3.00 (≥ 2)", "1.00 (≥ 2)", "1 of 2")
    assert second.columns == ("what", "length", "batch", "y", "reached")  # nothing was timed
    assert second.rows == [("output", "16", "1", "1.00 (≥ 2)", "no")]
    assert [str(claim) for claim in claims(rows)] == [
        "forward, x: holds in 2 of 2 rows",
        "forward, y: holds in 0 of 1 rows",
        "memory, y: holds in 0 of 1 rows",
    ]
    assert json.loads(json.dumps(vars(rows[1])))["found"]["y"] == [1.0, "1.00 (≥ 2)", False]


def tensors(found: Any) -> list[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        return [found]
    return [t for part in found for t in tensors(part)] if isinstance(found, tuple | list) else []


def test_both_sides_of_a_row_compute_the_same() -> None:
    compared = 0
    for case in cases("quick"):
        if case.label[0] not in ("forward", "backward", "options", "decoding", "layer"):
            continue
        if case.label[1].startswith("dropout"):  # each side draws its own
            continue
        mine, theirs = (tensors(way.run(way.ready())) for way in case.ways()[:2])
        tolerance = 0.05 if "bfloat16" in case.label[1] else 1e-4
        count = 1 if case.label[0] == "layer" else len(mine)  # the rest: weights stored in other shapes
        for a, b in zip(mine[:count], theirs[:count], strict=True):
            torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)
        compared += 1
    assert compared > 15


def test_operations_of_a_causal_mask_are_those_of_its_pairs() -> None:
    assert pairs(7, causal=True) == int(torch.ones(7, 7).tril().sum())
    assert pairs(7, causal=False) == 49


@pytest.mark.parametrize("d_model", sorted({size for size, _ in STEPS["full"]}))
def test_the_weights_of_a_step_are_those_of_the_models_linears(d_model: int) -> None:
    model = Transformer(training.config(d_model, 0.1))
    linears = sum(one.weight.numel() for one in model.modules() if isinstance(one, nn.Linear))
    assert native_models.step_weights(d_model) == linears + model.output.weight.numel()


def test_errors_are_those_of_the_types() -> None:
    exact, rounded = errors(16, "float32", True, 1.0), errors(16, "bfloat16", True, 1.0)
    for what in (OUTPUT, GRADIENTS):
        for whose in ("headwise", "SDPA"):
            assert 1e-9 < exact[what, whose] < 1e-5
            assert 1e-4 < rounded[what, whose] < 0.05


@compiled
def test_the_peak_counts_the_same_operations_at_each_call() -> None:
    single, half = (limits.operations(dtype) for dtype in (torch.float32, torch.bfloat16))
    assert single == limits.operations(torch.float32) > 0
    pairs_at_once = native.isa() == "avx512bf16"
    assert half == single * (2 if pairs_at_once else 1)
    ((way,), (other,)) = limits.peak(torch.float32), limits.peak(torch.bfloat16)
    assert (way.run(way.ready()), other.run(other.ready())) == (single, half)


@compiled
@pytest.mark.parametrize("count", [0, 1, 127, 129, 2**18 - 1, 2**18 + 1, 600_001])
def test_every_number_is_read(count: int) -> None:
    numbers = torch.randint(-(2**31), 2**31, (count,)).to(torch.int32)
    assert native.read_memory(numbers.data_ptr(), count) == int(numbers.long().sum()) % 2**32


def test_rows_are_printed_without_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "native", None)
    assert limits.peak(torch.float32) == limits.reading([torch.zeros(2)]) == []
    rows = [*PROGRAM.measure("quick", 1, only="forward float32, full")]
    rows += PROGRAM.measure("quick", 1, only="decoding float32")
    (forward, decoding) = PROGRAM.tables(rows, 1)
    assert "% of peak" not in forward.columns
    assert "% of merely reading" not in decoding.columns
    assert "times as fast as SDPA" in forward.columns
    assert all(isinstance(row, aims.Held) and row.reached != "-" for row in rows)
