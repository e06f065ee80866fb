"""`headwise see`: look at a text with a model, print the table, write the report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import typer
from rich.console import Console

from headwise.cli.errors import UserError
from headwise.cli.jsonout import as_json as facts_as_json
from headwise.cli.look import HeadFacts, Seen, look, open_model
from headwise.cli.report import render, telling
from headwise.cli.table import print_heads
from headwise.cli.text import read_text
from headwise.cli.whole_file import write

REPORT = Path("headwise-report.html")
SIGNS = (b'<meta name="generator" content="headwise', b"<title>What every head does: ")
"""Either stands near the beginning of every report; the second in those of older versions too."""


def see(
    text: str | None,
    *,
    model: str,
    layer: int | None,
    head: int | None,
    out: str | None,
    as_json: bool,
    stride: int | None,
    open_report: bool,
) -> None:
    """See `headwise see --help`.

    Raises:
        UserError: whatever was given that can't be done, before anything is written.
    """
    if out is not None and not out.strip():
        raise UserError(f"--out is empty: name a file, such as {REPORT}")
    given = read_text(text)
    target = Path(out) if out is not None else None if as_json else REPORT
    if target is not None:
        check_target(target)
    bert, name = open_model(model)
    for what, number, count in (
        ("layer", layer, bert.config.num_layers),
        ("head", head, bert.config.num_heads),
    ):
        if number is not None and not 0 <= number < count:
            raise UserError(f"--{what} {number}: {name} has {what}s 0 to {count - 1}")
    seen = look(bert, name, given.content, stride=stride, progress=_progress())
    chosen = [facts for facts in seen.facts if layer in (None, facts.layer) and head in (None, facts.head)]
    if target is not None:
        write(target, render(seen, text=given.content, origin=given.origin, start=telling(chosen)))
    if as_json:
        pairs = layer is not None or head is not None
        typer.echo(json.dumps(facts_as_json(seen, chosen, origin=given.origin, pairs=pairs), indent=1))
    else:
        _print(seen, chosen, target)
    if open_report and target is not None:
        typer.launch(target.resolve().as_uri())


def check_target(target: Path) -> None:
    """Find out before any work whether the report can be written there.

    Raises:
        UserError: a folder, a missing folder, no right to write, a file that isn't a report of ours.
    """
    if target.is_dir():
        raise UserError(f"--out {target} is a folder: name a file, such as {target / REPORT.name}")
    folder = target.parent
    if not folder.is_dir():
        raise UserError(f"--out {target}: there is no folder {folder}: make it first, or choose another")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise UserError(f"--out {target}: no right to write there: choose another place")
    if target.is_file() and not _ours(target):
        raise UserError(
            f"{'--out ' if target != REPORT else ''}{target} exists and is no report of headwise's, so it "
            "stays as it is: remove it, or name another file with --out"
        )


def _ours(file: Path) -> bool:
    """Was this file written here? An empty one holds nothing to lose."""
    try:
        with file.open("rb") as opened:
            head = opened.read(4096)
    except OSError:
        return False
    return not head or any(sign in head for sign in SIGNS)


def _progress() -> Callable[[int, int], None] | None:
    """Says on a terminal which window of a long text is read. The line is gone at the end."""
    if not sys.stderr.isatty():
        return None

    def say(number: int, windows: int) -> None:
        if windows > 1:
            end = "\r\x1b[K" if number == windows else ""
            sys.stderr.write(f"\r\x1b[Kreading window {number} of {windows}{end}")
            sys.stderr.flush()

    return say


def _print(seen: Seen, chosen: list[HeadFacts], target: Path | None) -> None:
    console = Console(file=sys.stdout, soft_wrap=False)
    arrow = "→" if "utf" in (console.encoding or "").lower() else "->"
    print_heads(console, seen, chosen, arrow=arrow)
    if target is not None:
        console.print()
        console.print(f"Report: {target.resolve()}", style="bold", highlight=False, soft_wrap=True)
