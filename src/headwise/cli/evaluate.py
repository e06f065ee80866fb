"""`headwise evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from headwise.applications.base import Evaluation
from headwise.applications.registry import application_of
from headwise.applications.running import local_data
from headwise.applications.speech_model import DECODERS
from headwise.cli.errors import UserError
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly


def evaluate(
    run: Path,
    *,
    data: Sequence[Path] | None,
    split: str,
    options: Mapping[str, Any],
    checkpoint: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """See `headwise evaluate --help`.

    Raises:
        UserError: a run or data that can't be used, an option that this application doesn't have.
    """
    which = checkpoint_named(checkpoint)
    for name in ("beam", "limit"):
        at_least_one(name, options.get(name))
    if options.get("decoder", DECODERS[0]) not in DECODERS:
        raise UserError(f"--decoder {options['decoder']}: choose {' or '.join(DECODERS)}")
    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise UserError(f"--out {out}: it must be a file in a folder that exists")
    with told_plainly():
        application = application_of(run)
        trained = application.open(run, which, _say)
        if data is not None:
            data = local_data(data, application.name, _say)
        try:
            found = trained.evaluate(split, data, options)
        except ValueError as error:
            if "option" in str(error):
                raise UserError(f"{application.name}: {error}") from None
            raise
    if out is not None:
        lines = "".join(json.dumps(dict(one), ensure_ascii=False) + "\n" for one in found.outputs)
        try:
            out.write_text(lines, encoding="utf-8")
        except OSError as error:
            raise UserError(f"--out {out}: can't be written: {error.strerror or error}") from None
    if as_json:
        typer.echo(json.dumps(_facts(run, application.name, checkpoint, found), ensure_ascii=False, indent=2))
    else:
        _print(run, application.name, found)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _facts(run: Path, name: str, checkpoint: str, found: Evaluation) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": str(run),
        "application": name,
        "checkpoint": checkpoint,
        "split": found.split,
        "examples": found.examples,
        "figures": dict(found.figures),
        "baselines": {one: dict(figures) for one, figures in found.baselines.items()},
        "notes": list(found.notes),
    }


def _print(run: Path, name: str, found: Evaluation) -> None:
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, title=f"{name}, {found.split}: {found.examples:,} examples")
    table.add_column("")
    names = [one for one in found.figures if not one.endswith(("_low", "_high"))]
    for one in names:
        table.add_column(one, justify="right", no_wrap=True)
    table.add_row(str(run), *(_with_interval(found.figures, one) for one in names))
    for baseline, figures in found.baselines.items():
        table.add_row(baseline, *(f"{figures[one]:.2f}" if one in figures else "" for one in names))
    console.print(table)
    for note in found.notes:
        console.print(note, style="dim", highlight=False, markup=False)


def _with_interval(figures: Mapping[str, float], name: str) -> str:
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{figures[name]:.2f}{between}"
