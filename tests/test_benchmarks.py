"""The benchmark programs run, print their tables, and compare things that are equal."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import common
from benchmarks.__main__ import NAMES, programs
from benchmarks.__main__ import main as run_all
from benchmarks.common import Timing, Way, time_in_turn
from benchmarks.document import write
from benchmarks.memory import extra_mib
from benchmarks.observations import by_hand, observers
from benchmarks.program import Program, Report, Result
from benchmarks.program import main as run_program
from benchmarks.table import Claim, Table

import headwise as hw


@pytest.fixture(autouse=True)
def _keep_threads() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def tensors(found: Any) -> list[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        return [found]
    return [t for part in found for t in tensors(part)] if isinstance(found, tuple | list) else []


def equal(mine: list[torch.Tensor], theirs: list[torch.Tensor], tolerance: float) -> None:
    assert len(mine) == len(theirs) > 0
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["forward", "backward", "options"])
def test_both_sides_of_a_row_compute_the_same(name: str) -> None:
    program = importlib.import_module(f"benchmarks.{name}").PROGRAM
    for case in program.cases("quick"):
        if case.label[0].startswith("dropout"):  # each side draws its own
            continue
        first, *others = case.ways()
        mine = tensors(first.run(first.ready()))
        for other in others:
            tolerance = 0.05 if "bfloat16" in case.label else 1e-4
            equal(mine, tensors(other.run(other.ready())), tolerance)


@pytest.mark.parametrize("name", ["module", "decode"])
def test_every_way_to_run_a_layer_computes_the_same(name: str) -> None:
    program = importlib.import_module(f"benchmarks.{name}").PROGRAM
    for case in program.cases("quick"):
        first, *others = case.ways()
        mine = tensors(first.run(first.ready()))
        for other in others:
            theirs = tensors(other.run(other.ready()))
            equal(mine[:1], theirs[:1], 1e-4)  # the rest: gradients of weights stored in other shapes


def test_a_training_step_is_the_same_in_both_libraries() -> None:
    program = importlib.import_module("benchmarks.training").PROGRAM
    for case in program.cases("quick"):
        if case.label[1] != "0":  # each side draws its own dropout
            continue
        tolerance = 0.05 if "bfloat16" in case.label else 1e-5
        ways = case.ways()
        for _ in range(2):  # the second loss is that of the weights after a step
            mine, *others = (way.run(None) for way in ways)
            equal([mine] * len(others), others, tolerance)


def test_every_way_to_write_makes_as_many_tokens_and_ours_the_same() -> None:
    program = importlib.import_module("benchmarks.decoding").PROGRAM
    for case in program.cases("quick"):
        found = {way.name: way.run(None) for way in case.ways()}
        written = int(case.label[-1])
        assert found["headwise"] == found["uncached"]
        assert {len(line) for line in found["headwise"]} == {written}
        if "Marian" in found:
            assert found["Marian"].shape[1] == 1 + written  # and what they begin after
        assert case.amount == len(found["headwise"]) * written


def test_the_statistics_by_hand_are_those_of_the_observers() -> None:
    length, width = 37, 5  # no map: its cells are unequal at such lengths
    q, k, v = torch.randn(3, 1, 8, length, width).unbind(0)
    _, seen = hw.attention(q, k, v, observe=observers())
    scores = (q @ k.mT) * width**-0.5
    mine = by_hand(torch.softmax(scores, -1), scores)
    found = tensors([seen[observer.name] for observer in observers()])
    assert len(found) == len(mine)
    for number, observer in enumerate((hw.Entropy(), hw.LogSumExp(), hw.Distance(), hw.Spread())):
        torch.testing.assert_close(seen[observer.name], mine[number], atol=2e-3, rtol=1e-4)
    for observer, place in ((hw.KeyMass(), 8), (hw.Offset(-1), 10), (hw.Mass([0]), 11)):
        there = seen[observer.name][..., -mine[place].shape[-1] :]  # the first query has no previous token
        torch.testing.assert_close(there, mine[place], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_its_table(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program: Program = importlib.import_module(f"benchmarks.{name}").PROGRAM
    file = tmp_path / "found.json"
    assert run_program(program, ["--quick", "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"headwise, {program.unit}" in said
    assert program.title in said
    (found,) = json.loads(file.read_text())
    rows = found["results"]["1"]
    assert [tuple(row["label"]) for row in rows] == [case.label for case in program.cases("quick")]
    assert all(seconds > 0 for row in rows for seconds in row["seconds"].values())
    assert all(row["label"][-1] in said for row in rows)


def test_labels_tell_rows_apart() -> None:
    for program in programs([]):
        for size in ("quick", "short", "full"):
            labels = [case.label for case in program.cases(size)]
            assert len(set(labels)) == len(labels)
            assert all(len(label) == len(program.labels) for label in labels)


def test_the_set_runs_and_writes_a_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- forward -->\nold\n<!-- /forward -->\nafter\n")
    assert run_all(["forward", "--quick", "--only", "causal", "--write", str(page)]) == 0
    text = page.read_text()
    assert "headwise, ms" in capsys.readouterr().out
    assert "| headwise, ms |" in text
    assert text.startswith("# Page\n<!-- forward -->\n")
    assert text.endswith("<!-- /forward -->\nafter\n")
    assert "old" not in text
    assert text.count("| causal |") == 4
    assert "python -m benchmarks.forward --size quick --threads 1" in text


def test_an_unknown_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_all(["sideways"])
    assert "sideways" in capsys.readouterr().err


def test_a_document_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="<!-- forward -->"):
        write(page, Report(programs(["forward"])[0], "quick", []), [1])


def test_the_page_has_a_place_for_every_program() -> None:
    text = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text()
    for name in NAMES:
        assert text.index(f"<!-- {name} -->") < text.index(f"<!-- /{name} -->")


def test_a_ratio_is_taken_within_rounds() -> None:
    # A clock that grows slower: medians of the columns would say 1.5, and every round says 3.
    timing = Timing({"a": [3.0, 6.0, 30.0], "b": [1.0, 2.0, 10.0]})
    assert timing.ratio("a", "b") == 3
    assert timing.seconds("a") == 6


def test_ways_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once in a round, and none always after the same one, which may leave the caches cold."""
    monkeypatch.setattr(common, "SAMPLE", 0)  # no way twice in a row
    seen: list[str] = []
    ways = [Way(name, seen.append, lambda name=name: name) for name in "abc"]
    timing = time_in_turn(ways, threads=1, budget=0, least=20)
    assert [len(samples) for samples in timing.samples.values()] == [20, 20, 20]
    assert seen[:6] == [*"aabbcc"]  # the first calls load and allocate, and are not counted
    rounds = ["".join(seen[at : at + 3]) for at in range(6, len(seen), 3)]
    assert all(sorted(one) == [*"abc"] for one in rounds)
    assert {pair for one in rounds for pair in itertools.pairwise(one)} == {*itertools.permutations("abc", 2)}


def test_memory_sees_the_whole_matrix_and_its_absence() -> None:
    program = programs(["options"])[0]
    (row,) = program.measure("short", 1, only="softcap")
    matrix = 8 * 2048 * 2048 * 4 / 2**20  # MiB: 8 heads in float32
    assert row.mib["torch"] >= matrix > row.mib["headwise"]
    (table,) = program.tables([row], 1)
    assert "headwise, MiB" in table.text()


@pytest.mark.slow
def test_a_way_that_fails_in_its_own_process_says_so() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        extra_mib("benchmarks.options", ("nothing",), "torch", size="quick", threads=1)


def test_cells_in_the_units_of_a_program() -> None:
    result = Result(("float32", "0.1", "128", "15"), {"headwise": 0.5}, amount=1920)
    (table,) = programs(["training"])[0].tables([result], 1)
    assert table.columns[-1] == "headwise, tokens/s"
    assert table.rows[0][-1] == "3840"
    result = Result(("greedy", "128", "16", "24"), {"headwise": 0.768}, amount=384)
    (table,) = programs(["decoding"])[0].tables([result], 1)
    assert table.rows[0][-1] == "2.00"


def test_claims_name_the_rows_where_they_fail() -> None:
    program = programs(["options"])[0]
    rows = [
        Result(("softcap", "forward", "2048"), ratios={"torch": 0.5}, mib={"headwise": 20.0}),
        Result(("sinks", "forward", "2048"), ratios={"torch": 1.25}, mib={"headwise": 120.0}),
    ]
    heavy, slow = program.claims(rows)
    assert str(heavy) == "less than 100 MiB forward: holds in 1 of 2 rows; not in sinks forward (120)"
    assert slow.missed == ("sinks forward (1.25)",)
    assert "no row" in str(Claim("anything", 0, ()))


def test_tables_align_and_become_markdown() -> None:
    table = Table("title", ("what", "ms"), 1, [("a", "1.00"), ("longer", "12")], ["note"])
    assert table.text().splitlines() == ["title", "", "what      ms", "a       1.00", "longer    12", "note"]
    assert "| what | ms |\n| :-- | --: |\n| a | 1.00 |" in table.markdown()


def test_rows_that_are_not_there_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = programs(["options"])
    with pytest.raises(SystemExit):
        run_program(program, ["--quick", "--only", "nothing of this"])
    said = capsys.readouterr().err
    assert "--only nothing of this: no row's name contains it; rows are " in said
    assert "softcap forward" in said


def test_parts_of_an_observed_call(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("headwise._native", reason="the compiled kernel wasn't built")
    before = torch.get_num_threads()
    importlib.import_module("benchmarks.parts").main(16)
    torch.set_num_threads(before)
    first, call, *others = capsys.readouterr().out.splitlines()
    assert "length 16" in first
    assert call.endswith("1.000")
    assert [line[:20].strip() for line in others] == [
        "call, observed",
        "kernel",
        "kernel and results",
        "check",
    ]
