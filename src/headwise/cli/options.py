"""What typer can't say by itself: numbers that are none, and a text without quotes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.cli.text import looks_like_path


def one_text(words: Sequence[str] | None) -> str | None:
    """The text; None where none was given.

    Raises:
        UserError: several words where the shell took the text apart.
    """
    if not words:
        return None
    if len(words) > 1:
        joined = " ".join(words)
        raise UserError(
            f"{len(words)} arguments, where one text or file is expected: put the text in quotes: "
            f"headwise see {shlex.quote(joined)}"
        )
    return words[0]


def is_run(words: Sequence[str] | None) -> bool:
    """Is the first of these the folder of a run? Of several words, any folder is meant as one; of two, what
    looks like the path of a folder that isn't there, too."""
    if not words:
        return False
    try:
        folder = Path(words[0])
        if not folder.is_dir():
            return len(words) == 2 and not folder.suffix and looks_like_path(words[0])
        return len(words) > 1 or (folder / "checkpoints").is_dir()
    except (OSError, ValueError):  # longer than any file name, or holds a NUL: a text
        return False


def whole(given: str | int) -> int:
    """A whole number, or a message that says so (typer's own speaks of parsing)."""
    try:
        return int(given)
    except ValueError:
        raise typer.BadParameter(f"{given!r} is no whole number") from None


def number(given: str | float) -> float:
    """A number, or a message that says so."""
    try:
        return float(given)
    except ValueError:
        raise typer.BadParameter(f"{given!r} is no number") from None
