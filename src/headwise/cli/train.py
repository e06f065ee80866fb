"""`headwise train`."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from headwise.applications.registry import MODULES, find
from headwise.applications.running import train_application
from headwise.cli.errors import UserError
from headwise.cli.mistakes import told_plainly
from headwise.training.settings import setting_names, with_settings


def train(
    name: str | None,
    *,
    data: Sequence[Path],
    budget: float | None,
    changes: Sequence[str],
    out: Path | None,
    resume: bool,
    list_settings: bool,
) -> None:
    """See `headwise train --help`.

    Raises:
        UserError: whatever can't be trained as asked.
    """
    if name is None:
        raise UserError(
            f"name what to train: {', '.join(sorted(MODULES))}; such as: headwise train vision --data digits"
        )
    if budget is not None and not (budget > 0 and math.isfinite(budget)):
        raise UserError(f"--budget {budget:g}: it must be a positive number of minutes")
    with told_plainly():
        application = find(name)
        if list_settings:
            _print_settings(with_settings(application.settings(), changes))
            return
        run = Path("runs") / name if out is None else out
        if resume and not run.exists():
            raise UserError(f"--resume: there is no run {run} yet; leave out --resume, or name it by --out")
        train_application(
            application, run, data, changes=changes, budget_minutes=budget, resume=resume, say=_say
        )
    if _first():
        typer.echo(run)


def _print_settings(settings: Any) -> None:
    for path in setting_names(settings):
        value: Any = settings
        for part in path.split("."):
            value = getattr(value, part)
        typer.echo(f"{path}={_written(value)}")


def _written(value: Any) -> str:
    """As `--set` reads it."""
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _first() -> bool:
    """Of several processes that torchrun or accelerate started, is this the one that speaks?"""
    return os.environ.get("RANK", "0") == "0"


def _say(line: str) -> None:
    if _first():
        print(line, file=sys.stderr)
