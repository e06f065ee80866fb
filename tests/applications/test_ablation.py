"""The ablation: its toys, its runs that are kept and go on, and what its table says."""

import json
import statistics

import pytest
import torch
from benchmarks import ablation
from benchmarks.ablation import Cell, Plan, cells, main, write_toy
from benchmarks.results import ablation_page

from headwise.models import Transformer, TransformerConfig
from headwise.training import SettingError, TrainingStopped

SMALL = ["--set", "d_model=16", "--set", "d_ff=16", "--set", "num_layers=1", "--toy-steps", "2"]
SMALL += ["--seeds", "1", "--set", "warmup=1", "--only", "task=copy"]


@pytest.fixture
def few(monkeypatch):
    """Toys of a few rows."""
    monkeypatch.setattr(ablation, "COUNTS", {"train": 60, "val": 5, "test": 7})


def rows(folder, split):
    return [
        [line.split() for line in (folder / f"{split}.{language}").read_text().splitlines()]
        for language in ("en", "de")
    ]


@pytest.mark.parametrize("task", ablation.TOYS)
def test_toys_are_what_they_are_called(task, few, tmp_path):
    seen = []
    for split, count in ablation.COUNTS.items():
        sources, targets = rows(write_toy(task, tmp_path), split)
        assert len(sources) == count
        for source, target in zip(sources, targets, strict=True):
            assert target == {"copy": source, "reverse": source[::-1], "sort": sorted(source)}[task]
            assert len(set(source)) == len(source) in range(5, 9)
        seen += map(tuple, sources)
    assert len(set(seen)) == len(seen)


def test_every_run_is_planned_once():
    every = cells(3)
    assert len({cell.name for cell in every}) == len(every) == 3 * (5 + 1 + 2 * 3)
    heads = [cell for cell in every if cell.task == "multi30k" and cell.positions == "sinusoidal"]
    assert sorted((cell.heads, cell.seed) for cell in heads) == [
        (h, s) for h in (1, 2, 4, 8, 16) for s in (1, 2, 3)
    ]
    assert [cell.seed for cell in every] == sorted(cell.seed for cell in every)
    assert [cell.name for cell in every if cell.fits({"heads": "8", "seed": "2"})] == [
        "multi30k-8-sinusoidal-2",
        "multi30k-8-none-2",
    ]


def test_heads_cost_the_same(tmp_path):
    counts = set()
    for heads in ablation.HEADS:
        sizes = dict(
            one.split("=") for one in Plan(tmp_path, None).settings(Cell("multi30k", heads, "none", 1))
        )
        names = ("num_layers", "d_model", "d_ff", "vocab_size", "num_heads")
        with torch.device("meta"):
            model = Transformer(TransformerConfig(**{name: int(sizes[name]) for name in names}))
        counts.add(sum(one.numel() for one in model.parameters()))
        assert model.encoder.layers[0].self_attention.d_k == 128 // heads
    assert len(counts) == 1


def test_without_positions_an_encoder_sees_a_bag_of_tokens():
    """Whatever order tokens come in, each has the same vector: equivariance under permutations."""
    torch.manual_seed(0)
    source = torch.randint(3, 37, (2, 11))
    order = torch.randperm(11)
    for positions, alike in (("none", True), ("sinusoidal", False)):
        sizes = {"num_layers": 2, "d_model": 24, "d_ff": 24, "num_heads": 3, "positions": positions}
        model = Transformer(TransformerConfig(vocab_size=37, **sizes)).double().eval()
        moved, still = model.encode(source[:, order]), model.encode(source)[:, order]
        assert torch.allclose(moved, still, rtol=1e-10, atol=1e-12) == alike


def test_runs_are_kept_and_those_that_were_stopped_go_on(few, tmp_path, monkeypatch, capsys):
    out = tmp_path / "runs"
    stopped = []
    really = ablation.measure

    def stop_once(plan, cell, folder, limit=None):
        if limit is None and cell.positions == "none" and not stopped:
            stopped.append(cell)
            raise OSError("stopped after training")
        return really(plan, cell, folder, limit)

    monkeypatch.setattr(ablation, "measure", stop_once)
    assert main(["--out", str(out), *SMALL]) == 2
    first = json.loads((out / "copy-4-sinusoidal-1" / "result.json").read_text())
    assert not (out / "copy-4-none-1" / "result.json").exists()
    assert "2 runs of toys: about" in capsys.readouterr().err

    trained = []
    train = ablation.train_application
    monkeypatch.setattr(
        ablation,
        "train_application",
        lambda *a, **k: trained.append((a[1].name, k.get("resume"))) or train(*a, **k),
    )
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "results.md").write_text("before\n<!-- ablation -->\nold\n<!-- /ablation -->\nafter\n")
    assert main(["--out", str(out), *SMALL, "--docs", str(docs)]) == 0
    assert [(name, resumed) for name, resumed in trained if name != "run"] == [("copy-4-none-1", True)]
    facts = json.loads((out / "ablation.json").read_text())
    assert facts["cells"][0] == first
    assert [cell["positions"] for cell in facts["cells"]] == ["sinusoidal", "none"]
    assert all(0 <= cell["value"] <= 100 and cell["examples"] == 7 for cell in facts["cells"])

    page = (docs / "results.md").read_text()
    assert page.startswith("before\n") and page.endswith("after\n")  # noqa: PT018
    assert "old" not in page
    assert f"| copy letters (% right) | {first['value']:.1f} ± 0.0 |" in page
    assert "--set d_model=16" in page
    for suffix in ("svg", "png"):
        assert (docs / "images" / "results" / f"ablation.{suffix}").stat().st_size > 1000

    trained.clear()
    assert main(["--out", str(out), *SMALL]) == 0
    assert not trained
    capsys.readouterr()
    assert main(["--out", str(out), *SMALL, "--toy-steps", "3"]) == 2
    assert "made with other settings: give another --out" in capsys.readouterr().err


def test_an_estimate_trains_nothing_that_is_kept(few, tmp_path, capsys):
    assert main(["--out", str(tmp_path / "runs"), *SMALL, "--estimate"]) == 0
    assert "hours in all" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["data"]


def test_a_stop_is_told_in_a_line(few, tmp_path, monkeypatch, capsys):
    def stop(*args, **kwargs):
        raise TrainingStopped("stopped by SIGTERM", 143)

    monkeypatch.setattr(ablation, "estimates", lambda plan, missing: [])
    monkeypatch.setattr(ablation, "train_application", stop)
    assert main(["--out", str(tmp_path), *SMALL]) == 143
    assert capsys.readouterr().err == "stopped by SIGTERM (here: the same command again)\n"


def test_mistakes_are_told_in_a_line(tmp_path, capsys):
    assert main(["--out", str(tmp_path), "--only", "task=multi30k,heads=1,seed=1"]) == 2
    assert "give Multi30k by --data" in capsys.readouterr().err
    for wrong in ("heads=3", "head=4", "heads"):
        with pytest.raises(SystemExit):
            main(["--only", wrong])
    cell = Cell("copy", 4, "none", 1)
    (tmp_path / cell.name).mkdir()
    (tmp_path / cell.name / "result.json").write_text('{"settings": []}')
    with pytest.raises(SettingError, match="made with other settings"):
        Plan(tmp_path, None).result(cell)


# What the page says of figures


def facts_of(values):
    made = [
        {"task": task, "heads": heads, "positions": positions, "seed": seed, "value": value}
        | {"parameters": 101, "seconds": 60, "figure": "bleu", "examples": 7}
        | {"settings": ["d_model=16", "num_heads=8", "d_model=24"]}
        for (task, heads, positions), some in values.items()
        for seed, value in enumerate(some, 1)
    ]
    machine = {"processor": "P", "threads": 1, "cores": 2, "torch": "2"}
    return {"schema": 1, "steps": 11, "toy_steps": 13, "command": "c", "machine": machine, "cells": made}


def test_a_difference_is_told_from_chance_by_its_seeds():
    apart, error, sure = ablation_page.difference([30.0, 31.0, 32.0], [20.0, 21.0, 22.0])
    assert apart == 10
    assert error == pytest.approx((1 / 3 + 1 / 3) ** 0.5)
    assert sure
    assert not ablation_page.difference([30.0, 31.0, 32.0], [28.0, 29.0, 30.0])[2]  # 2 / 0.82 < 4.30
    assert ablation_page.difference([1.0], [2.0]) == (-1, 0, None)


def test_the_table_has_means_and_the_papers_figures(tmp_path):
    values = {
        ("multi30k", 1, "sinusoidal"): [30.0, 31.0, 32.0],
        ("multi30k", 8, "sinusoidal"): [33.0, 34.0, 35.0],
        ("multi30k", 8, "none"): [20.0, 20.0, 20.0],
        ("sort", 4, "sinusoidal"): [90.0],
    }
    (tmp_path / "results.md").write_text("<!-- ablation -->\n<!-- /ablation -->\n")
    ablation_page.keep(facts_of(values), tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| 1 | 30.0, 31.0, 32.0 | 31.00 ± 1.00 | 24.9 |" in text
    assert "| 8 | 33.0, 34.0, 35.0 | 34.00 ± 1.00 | 25.8 |" in text
    assert "8 heads have +3.00 BLEU against one (standard error 0.82; +0.9 in the paper)" in text
    assert "can't tell that from none" in text
    assert "| translate Multi30k (BLEU) | 34.0 ± 1.0 | 20.0 ± 0.0 |" in text
    assert "| sort" not in text  # without positions it wasn't run
    assert "10 runs with 3 seeds" in text
    assert "heads are d_model / h wide, 24 with 1 to 3 with 8 (the paper's base model: 512 / h)" in text
    assert statistics.stdev(values["multi30k", 1, "sinusoidal"]) == 1


def test_what_was_not_run_is_said_to_be_so(tmp_path):
    assert ablation_page.body(tmp_path).startswith("**Not run yet.**")
