"""The trained model that a command is for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from headwise.applications.registry import application_of
from headwise.cli.errors import UserError, printable
from headwise.training.runs import Which


def trained_for(run: Path, name: str, verb: str, which: Which) -> Any:
    """What `open` of the application `name` makes of a run; what it says goes to standard error.

    Args:
        verb: what a model of another application doesn't do, such as "translate"

    Raises:
        UserError: the run is of another application.
        RunError, CheckpointError: it can't be used.
    """
    application = application_of(run)
    if application.name != name:
        raise UserError(f"run {run} is of application {application.name!r}: it doesn't {verb}")
    return application.open(run, which, say)


def say(line: str) -> None:
    """On standard error, since standard output is what was asked for."""
    print(printable(line), file=sys.stderr)
