"""From the folder of a run to the facts that its section shows."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import heads as of_heads
from benchmarks.results import pictures
from benchmarks.results.drawn import draw_heads
from benchmarks.results.examples import Output, choose, examples_of
from benchmarks.results.sections import Section
from headwise.applications.base import data_of
from headwise.applications.plain import from_plain
from headwise.applications.registry import find
from headwise.cli.errors import UserError
from headwise.cli.evaluate import evaluate
from headwise.training.checkpoint import checkpoint_folders, read_state
from headwise.training.machine import machine
from headwise.training.metrics import read_metrics
from headwise.training.runs import Which, read_config
from headwise.training.settings import setting_names, with_settings

OBSERVED = 100
"""Held-out inputs that the heads are observed on: the first ones of the test."""


@dataclass(frozen=True)
class How:
    """How facts are collected.

    Args:
        data: where the data is now; empty: where the run read it
        checkpoints: "best", "last", "average"; of several, validation chooses
        threads: of the training, on this machine, where the run itself doesn't say
        note: what has to be known of the run, in a sentence
        observed: inputs that heads are observed on
        unfinished: whether a run is taken that could go on
    """

    data: tuple[Path, ...] = ()
    checkpoints: tuple[Which, ...] = ("best",)
    threads: int | None = None
    note: str = ""
    observed: int = OBSERVED
    unfinished: bool = False


def collect(section: Section, run: Path, images: Path, how: How) -> dict[str, Any]:
    """Facts of a run, evaluated where it isn't yet, and its pictures drawn into a folder.

    Raises:
        ValueError: the run isn't of the section's application, or has nothing to evaluate yet.
    """
    config = read_config(run)
    if config.get("application") != section.application:
        raise ValueError(
            f"{run} is of {config.get('application')!r}, and {section.name} of {section.application!r}"
        )
    states = [read_state(folder) for folder in checkpoint_folders(run)]
    if not states or not states[-1].get("best"):
        raise ValueError(f"{run} has no validated checkpoint yet: let it go on")
    whole = finished(config["recipe"], states[-1])
    if not whole and not how.unfinished:
        step, minutes = states[-1]["step"], states[-1]["seconds"] / 60
        raise ValueError(
            f"{run} isn't finished: it is at step {step:,} after {minutes:.0f} minutes; let it "
            "go on (--resume), or take it as it is by --unfinished"
        )
    checkpoint, evaluations = _evaluations(section, run, how)
    outputs = _outputs(run, checkpoint)
    trained: Any = find(section.application).open(run, checkpoint, _warn)
    data = how.data or tuple(data_of(config))
    examples = examples_of(section.application, trained, outputs, data)
    scores = examples.scores()
    choice = choose(scores, examples.right(scores), examples.score)
    heads = of_heads.observe(examples, range(min(how.observed, len(outputs))))
    pictures.curves(run, images / f"{section.name}-curves.svg")
    drawn = draw_heads(examples, choice, heads, images / f"{section.name}-heads.svg")
    return {
        "schema": 1,
        "name": section.name,
        "headwise": config["headwise"],
        "command": section.command(*options_of(section.application, config)),
        "seed": config["recipe"]["seed"],
        "data": counts_of(config["data"], evaluations),
        **_training(run, states[-1]),
        "parameters": sum(one.numel() for one in trained.model.parameters()),
        "machine": config.get("machine") or ({**machine(), "threads": how.threads} if how.threads else None),
        "finished": whole,
        "note": how.note,
        "checkpoint": checkpoint,
        "evaluations": evaluations,
        "outputs": {
            "rule": choice.rule,
            "score": examples.score,
            "rows": [
                {"which": word, "score": round(scores[number], 4), **outputs[number]}
                for word, number in choice.rows
            ],
        },
        "observed": min(how.observed, len(outputs)),
        "heads": of_heads.plain(heads),
        "drawn": drawn,
    }


def finished(recipe: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Whether a run came to one of the ends that its recipe sets."""
    ends = (("steps", state["step"]), ("epochs", state["epoch"]), ("patience", state["stale"]))
    spent = recipe["budget_minutes"] is not None and state["seconds"] >= 60 * recipe["budget_minutes"]
    return spent or any(recipe[name] is not None and reached >= recipe[name] for name, reached in ends)


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


def options_of(application: str, config: Mapping[str, Any]) -> list[str]:
    """The options that make a run's settings of the recommended ones: "--budget 115", "--set seed=1".

    Raises:
        ValueError: there are none that do.
    """
    default = find(application).settings()
    wanted = from_plain(type(default), {**config["settings"], "recipe": config["recipe"]})
    names = list(setting_names(default))
    options, changes = [], []
    for path in names:
        before, value = _at(default, path), _at(wanted, path)
        if before == value:
            continue
        if path == "recipe.budget_minutes":
            options.append(f"--budget {value:g}")
            wanted = with_settings(wanted, [f"{path}={_written(before)}"])
            continue
        last = path.rpartition(".")[2]
        name = last if sum(one.rpartition(".")[2] == last for one in names) == 1 else path
        changes.append(f"{name}={_written(value)}")
    if with_settings(default, changes) != wanted:
        raise ValueError(f"no --set gives this run's settings again; found were {' '.join(changes)}")
    return [*options, *(f"--set {change}" for change in changes)]


def _at(settings: Any, path: str) -> Any:
    for part in path.split("."):
        settings = getattr(settings, part)
    return settings


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def counts_of(data: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many examples each part of the data has, and what is counted."""
    counts: dict[str, Any] = {}
    for split, facts in data.items():
        if isinstance(facts, Mapping):
            what, count = next((name, n) for name, n in facts.items() if isinstance(n, int))
            counts["valid" if split == "val" else split] = count
            counts["what"] = what
    counts.setdefault("test", next(one["examples"] for one in evaluations if one["split"] == "test"))
    return counts


def _training(run: Path, state: Mapping[str, Any]) -> dict[str, Any]:
    """How long it took, and when it was best."""
    lines = read_metrics(run)
    best = state["best"]
    at = next(
        (line["seconds"] for line in lines if line["split"] == "valid" and line["step"] == best["step"]), None
    )
    return {
        "seconds": round(state["seconds"], 1),
        "step": state["step"],
        "epoch": state["epoch"],
        "precision": state.get("precision"),
        "budget": read_config(run)["recipe"]["budget_minutes"],
        "best": {
            **{name: best[name] for name in ("step", "metric", "value")},
            "seconds": at and round(at, 1),
        },
    }


def _evaluations(section: Section, run: Path, how: How) -> tuple[Which, list[dict[str, Any]]]:
    """Evaluations of all checkpoints asked for; the one that is best on the validation set."""
    found = [evaluation(run, which, "test", how.data) for which in how.checkpoints]
    if len(how.checkpoints) == 1:
        return how.checkpoints[0], found
    valid = [evaluation(run, which, "val", how.data) for which in how.checkpoints]
    figure = section.targets[0].figure if section.targets else "token_error"
    sign = -1 if figure == "token_error" else 1
    chosen = max(range(len(valid)), key=lambda place: (sign * valid[place]["figures"][figure], -place))
    return how.checkpoints[chosen], found + valid


def evaluation(run: Path, which: str, split: str, data: Sequence[Path]) -> dict[str, Any]:
    """What `headwise evaluate RUN --json --out ...` says: as it said before, where that is newer than the
    run's checkpoints."""
    folder = run / "evaluation"
    said, outputs = folder / f"{split}-{which}.json", folder / f"{split}-{which}.jsonl"
    newest = max(folder.stat().st_mtime for folder in (run / "checkpoints").iterdir())
    if not (said.is_file() and outputs.is_file() and said.stat().st_mtime >= newest):
        folder.mkdir(exist_ok=True)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                evaluate(
                    run,
                    data=data or None,
                    split=split,
                    options={},
                    checkpoint=which,
                    out=outputs,
                    as_json=True,
                )
        except UserError as error:
            raise ValueError(str(error)) from None
        said.write_text(printed.getvalue(), encoding="utf-8")
    facts: dict[str, Any] = json.loads(said.read_text(encoding="utf-8"))
    return {
        name: facts[name] for name in ("checkpoint", "split", "examples", "figures", "baselines", "notes")
    }


def _outputs(run: Path, which: str) -> list[Output]:
    lines = (run / "evaluation" / f"test-{which}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
