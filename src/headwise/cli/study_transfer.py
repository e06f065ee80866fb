"""`headwise study export` and `import`: all progress as one JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.cli.whole_file import write
from headwise.study import progress


def write_progress(out: Path | None, profile: str) -> None:
    """Write all progress of a profile.

    Raises:
        UserError: the profile has none, or the file can't be written.
    """
    try:
        store = _open(profile)
        made = progress.export_progress(store, clock=progress.now(), profile=profile)
        store.close()
    except progress.ProgressError as error:
        raise UserError(str(error)) from None
    text = json.dumps(made, indent=1) + "\n"  # in ASCII, which can be written and printed anywhere
    if out is None:
        typer.echo(text, nl=False)
        return
    write(out, text)
    counts = ", ".join(f"{len(made[kind])} {kind}" for kind in ("reviews", "answers", "marks"))
    typer.echo(f"{out}: {counts}")


def _open(profile: str) -> progress.Store:
    file = progress.progress_file(profile)
    if not file.is_file():
        raise UserError(f"the profile {profile!r} has no progress yet: there is no {file}")
    return progress.Store(file)


def read_progress(file: Path, profile: str) -> None:
    """Add the progress in a file to a profile's.

    Raises:
        UserError: the file can't be read, or has a fault; nothing was changed.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: can't be read: {error.strerror or error}") from None
    try:
        store = progress.Store(progress.progress_file(profile))
        added = progress.import_text(store, content, clock=progress.now())
        store.close()
    except progress.ProgressError as error:
        raise UserError(f"{file}: {error}") from None
    counts = ", ".join(f"{added[kind]} {kind}" for kind in ("reviews", "answers", "marks"))
    typer.echo(f"Added {counts}; {added['known']} entries were there already.")
