"""`headwise data`."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from headwise.applications.datasets import DATASETS, Dataset, find_dataset, make_dataset
from headwise.cli.mistakes import told_plainly

OTHERS = (
    "Besides: scikit-learn's digits need no fetching (headwise train vision --data digits), and other data "
    "comes from your own files or the Hugging Face hub (--data hub:NAME)."
)


def list_datasets(*, as_json: bool) -> None:
    """All datasets."""
    if as_json:
        typer.echo(
            json.dumps({"schema": 1, "datasets": [_described(one) for one in DATASETS.values()]}, indent=2)
        )
        return
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("name", "application", "examples", "download"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("examples", "download") else "left")
    for one in DATASETS.values():
        table.add_row(one.name, one.application, f"{sum(one.counts.values()):,}", one.download)
    console.print(table)
    for one in DATASETS.values():
        counts = ", ".join(f"{split} {count:,}" for split, count in one.counts.items() if split != "all")
        told = f"{one.about}{f' ({counts})' if counts else ''}. By {one.client}. Licence: {one.licence}."
        console.print(f"\n{one.name}: {told}", highlight=False, markup=False)
    console.print(f"\n{OTHERS}", style="dim", highlight=False, markup=False)


def _described(one: Dataset) -> dict[str, object]:
    return {
        "name": one.name,
        "application": one.application,
        "about": one.about,
        "counts": dict(one.counts),
        "licence": one.licence,
        "download": one.download,
        "client": one.client,
        "by_hand": one.by_hand,
    }


def fetch(
    name: str, *, to: Path | None, language: str | None, fresh: bool, accept: bool, as_json: bool
) -> None:
    """See `headwise data --help`. The folder is printed on standard output, all else on standard error.

    Raises:
        UserError: no such dataset, no client, no network, other counts.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # cleans up, as Ctrl-C does
    with told_plainly():
        dataset = find_dataset(name)
        other = language is not None and language != dataset.language
        folder = Path("data") / (f"{name}-{language}" if other else name) if to is None else to
        facts = make_dataset(dataset, folder, language=language, fresh=fresh, accept=accept, say=_say)
    command = ["headwise", "train", dataset.application, "--data", str(folder)]
    for change in dataset.settings(language):
        command += ["--set", change]
    if as_json:
        typer.echo(json.dumps({"schema": 1, "folder": str(folder), **facts, "train": command}, indent=2))
        return
    _say(", ".join(f"{split} {count:,}" for split, count in facts["counts"].items()) + " examples")
    _say(f"licence: {dataset.licence}")
    _say(f"train on it: {shlex.join(command)}")
    typer.echo(folder)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
