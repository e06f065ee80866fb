"""The paper's ablation in small: how many heads, and what is left without positions.

python -m benchmarks.ablation --data multi30k/               all that isn't there yet
python -m benchmarks.ablation --data multi30k/ --estimate    how long that takes
python -m benchmarks.ablation --only task=reverse,seed=1     some of it

Rows A of table 3 (1, 2, 4, 8, 16 heads of d_model / h each, so at constant cost), on Multi30k, and models
without positions there and on three toys: copy, reverse and sort a few letters. Finished runs are kept and
skipped, one that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import ablation_page
from headwise.applications import DataError, find, train_application
from headwise.training import SettingError, TrainingStopped
from headwise.training.files import replace_file
from headwise.training.machine import machine
from headwise.training.metrics import read_metrics

HEADS = (1, 2, 4, 8, 16)
USUAL = 8  # heads of the runs that compare positions
TOYS = ("copy", "reverse", "sort")
LETTERS = "abcdefghijklmnopqrst"
SHORTEST, LONGEST = 5, 8
COUNTS = {"train": 4000, "val": 100, "test": 500}
REAL = (
    "num_layers=3",
    "d_model=128",
    "d_ff=512",
    "vocab_size=4000",
    "max_tokens=1000",
    "validation_texts=100",
    "precision=bfloat16",
)
TOY = (
    "num_layers=2",
    "d_model=64",
    "d_ff=256",
    "num_heads=4",
    "vocab_size=300",
    "max_tokens=1000",
    "dropout=0.1",
    "validation_texts=100",
    "precision=float32",
    "warmup=200",
)


@dataclass(frozen=True)
class Cell:
    """One run."""

    task: str
    heads: int
    positions: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.task}-{self.heads}-{self.positions}-{self.seed}"

    def fits(self, only: dict[str, str]) -> bool:
        return all(str(asdict(self)[name]) == value for name, value in only.items())


def cells(seeds: int, *, real: bool = True) -> list[Cell]:
    """All runs: a seed after the other, so that what is done early is whole."""
    found = []
    for seed in range(1, seeds + 1):
        for task in TOYS:
            found += [Cell(task, 4, positions, seed) for positions in ("sinusoidal", "none")]
        if real:
            found += [Cell("multi30k", heads, "sinusoidal", seed) for heads in HEADS]
            found.append(Cell("multi30k", USUAL, "none", seed))
    return found


def write_toy(task: str, folder: Path) -> Path:
    """Rows of different letters, and what is to be written for them: the same, the reverse, or in order."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random("headwise ablation")
    seen: set[str] = set()
    for split, count in COUNTS.items():
        sources: list[str] = []
        targets: list[str] = []
        while len(sources) < count:
            row = chance.sample(LETTERS, chance.randint(SHORTEST, LONGEST))
            if "".join(row) in seen:  # no row is in two parts
                continue
            seen.add("".join(row))
            sources.append(" ".join(row))
            wanted = {"copy": row, "reverse": row[::-1], "sort": sorted(row)}[task]
            targets.append(" ".join(wanted))
        for language, lines in (("en", sources), ("de", targets)):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return folder


@dataclass(frozen=True)
class Plan:
    """What all runs have in common.

    Args:
        out: a folder for the runs
        data: Multi30k
        steps, toy_steps: of each run
        changes: further settings, as "key=value"
    """

    out: Path
    data: Path | None
    steps: int = 5000
    toy_steps: int = 1000
    changes: tuple[str, ...] = ()

    def settings(self, cell: Cell) -> list[str]:
        """Everything that is set for a run."""
        toy = cell.task in TOYS
        steps = self.toy_steps if toy else self.steps
        chosen = [*(TOY if toy else REAL), *self.changes]
        own = {"num_heads": cell.heads, "positions": cell.positions, "seed": cell.seed, "steps": steps}
        return [
            *chosen,
            *(f"{name}={value}" for name, value in own.items()),
            f"validate_every={steps}",
            "keep=1",
        ]

    def folder(self, cell: Cell) -> Path:
        return self.out / cell.name

    def corpus(self, cell: Cell) -> Path:
        if cell.task in TOYS:
            return write_toy(cell.task, self.out / "data" / cell.task)
        if self.data is None:
            raise DataError("give Multi30k by --data, or leave it out by --only task=copy")
        return self.data

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """Of a run that is finished; None for another.

        Raises:
            SettingError: it was made with other settings.
        """
        path = self.folder(cell) / "result.json"
        if not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if found["settings"] != self.settings(cell):
            raise SettingError(f"{path.parent} was made with other settings: give another --out for these")
        return found


def run(plan: Plan, cell: Cell) -> dict[str, Any]:
    """Train and measure one model; what there is already is taken."""
    application, folder = find("translation"), plan.folder(cell)
    found = plan.result(cell)
    if found is not None:
        return found
    begun = (folder / "config.json").exists()
    settings = plan.settings(cell)
    report = train_application(
        application, folder, [plan.corpus(cell)], changes=settings, resume=begun, show=False
    )
    figure, value, examples = measure(plan, cell, folder)
    found = {
        **asdict(cell),
        "settings": settings,
        "figure": figure,
        "value": value,
        "examples": examples,
        "parameters": report.parameters,
        "seconds": round(report.seconds, 1),
    }
    replace_file(folder / "result.json", json.dumps(found, indent=1).encode())
    return found


def measure(plan: Plan, cell: Cell, folder: Path, limit: int | None = None) -> tuple[str, float, int]:
    """Name and value of what is reached on the test set, and its size: BLEU with beam 4, or for a toy the
    percentage of rows that are right from end to end. It is the last checkpoint's: the steps are fixed."""
    toy = cell.task in TOYS
    trained = find("translation").open(folder, "last", lambda line: print(line, file=sys.stderr))
    found = trained.evaluate("test", [plan.corpus(cell)], {"beam": 1 if toy else 4, "limit": limit})
    if not toy:
        return "bleu", found.figures["bleu"], found.examples
    right = sum(one["output"] == one["reference"] for one in found.outputs)
    return "right", 100 * right / found.examples, found.examples


def estimate(plan: Plan, cell: Cell, *, steps: int = 12, texts: int = 16) -> float:
    """Seconds that a run of this kind will take, from a few steps and a few outputs of it."""
    with tempfile.TemporaryDirectory() as folder:
        changes = [
            one for one in plan.settings(cell) if not one.startswith(("steps=", "validate_every=", "warmup="))
        ]
        changes += [f"steps={steps}", f"validate_every={steps}", "warmup=1", f"log_every={steps // 3}"]
        sample = Path(folder) / "run"
        train_application(find("translation"), sample, [plan.corpus(cell)], changes=changes, show=False)
        lines = [line for line in read_metrics(sample) if line["split"] == "train"]
        # the first third warms up
        a_step: float = (lines[-1]["seconds"] - lines[0]["seconds"]) / (lines[-1]["step"] - lines[0]["step"])
        began = time.perf_counter()
        _, _, examples = measure(plan, cell, sample, texts)
        a_text = (time.perf_counter() - began) / examples
    toy = cell.task in TOYS
    return (plan.toy_steps if toy else plan.steps) * a_step + (COUNTS["test"] if toy else 1000) * a_text


def estimates(plan: Plan, missing: Sequence[Cell]) -> Iterator[str]:
    """How long the runs that are missing will take, in words."""
    total = 0.0
    for toy in (True, False):
        some = [cell for cell in missing if (cell.task in TOYS) == toy]
        if some:
            each = estimate(plan, some[0])
            total += each * len(some)
            yield (
                f"{len(some)} runs of {'toys' if toy else 'multi30k'}: about {each / 60:.1f} minutes each, "
                "if the machine stays as it is now (and less, since an untrained model writes more)"
            )
    yield f"about {total / 3600:.1f} hours in all"


def collect(plan: Plan, wanted: Sequence[Cell]) -> dict[str, Any]:
    """What is finished of these runs."""
    found = [result for cell in wanted if (result := plan.result(cell)) is not None]
    return {
        "schema": 1,
        "steps": plan.steps,
        "toy_steps": plan.toy_steps,
        "command": "python -m benchmarks.ablation --data multi30k/"
        + "".join(f" --set {change}" for change in plan.changes)
        + f" --steps {plan.steps} --toy-steps {plan.toy_steps}",
        "machine": machine(),
        "cells": found,
    }


def _only(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or name not in Cell.__dataclass_fields__:
            raise argparse.ArgumentTypeError(
                f"{part!r}: write such as heads=4,seed=1; names are {', '.join(Cell.__dataclass_fields__)}"
            )
        found[name] = value
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("--data", type=Path, help="the folder of Multi30k")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="where the runs are kept")
    parser.add_argument("--steps", type=int, default=Plan.steps, help="of a run on Multi30k")
    parser.add_argument("--toy-steps", type=int, default=Plan.toy_steps, help="of a run on a toy")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", type=_only, default={}, metavar="NAME=VALUE,...", help="runs that fit")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a further setting")
    parser.add_argument("--estimate", action="store_true", help="say how long it takes, and do no more")
    parser.add_argument(
        "--docs", type=Path, default=None, help="write what is finished into this results.md's folder"
    )
    given = parser.parse_args(arguments)
    plan = Plan(given.out, given.data, given.steps, given.toy_steps, tuple(given.set))
    every = cells(given.seeds)
    wanted = [cell for cell in every if cell.fits(given.only)]
    if not wanted:
        parser.error("no run fits --only")
    try:
        missing = [cell for cell in wanted if plan.result(cell) is None]
        if missing:
            for line in estimates(plan, missing):
                print(line, file=sys.stderr, flush=True)
        if given.estimate:
            return 0
        began = time.perf_counter()
        for number, cell in enumerate(missing, 1):
            found = run(plan, cell)
            hours = (time.perf_counter() - began) / number * (len(missing) - number) / 3600
            said = f"{number} of {len(missing)}: {cell.name}, {found['figure']} {found['value']:.2f}"
            print(f"{said}, about {hours:.1f} hours left", file=sys.stderr, flush=True)
        facts = collect(plan, every)
    except TrainingStopped as stopped:
        print(f"{stopped} (here: the same command again)", file=sys.stderr)
        return stopped.exit_code
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    replace_file(given.out / "ablation.json", json.dumps(facts, indent=1).encode())
    print(given.out / "ablation.json")
    if given.docs is not None:
        print(ablation_page.keep(facts, given.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
