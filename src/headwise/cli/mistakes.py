"""What the rooms below say of a user's mistake, as the one line of a command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from headwise.applications.errors import DataError
from headwise.cli.errors import UserError, printable
from headwise.training.checkpoint import CheckpointError
from headwise.training.extras import MissingExtra
from headwise.training.runs import RunError, Which
from headwise.training.settings import SettingError
from headwise.training.stop import TrainingStopped

MISTAKES = (DataError, SettingError, RunError, CheckpointError, MissingExtra)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Mistakes become a `UserError`; a run that was stopped says so and ends with its own exit code."""
    try:
        yield
    except MISTAKES as error:
        raise UserError(str(error)) from None
    except TrainingStopped as stopped:
        print(f"headwise: {printable(str(stopped))}", file=sys.stderr)
        sys.exit(stopped.exit_code)


def checkpoint_named(name: str) -> Which:
    """Which weights of a run are meant.

    Raises:
        UserError: none of the three.
    """
    if name == "best":
        return "best"
    if name == "last":
        return "last"
    if name == "average":
        return "average"
    raise UserError(f"--checkpoint {name}: choose best, last or average")


def at_least_one(name: str, value: int | None) -> None:
    """Refuse counts below 1.

    Raises:
        UserError: it is.
    """
    if value is not None and value < 1:
        raise UserError(f"--{name} {value}: it must be at least 1")
