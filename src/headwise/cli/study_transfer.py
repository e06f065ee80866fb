"""`headwise study export` and `import`: all progress as one JSON file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from headwise.cli.counts import counted
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
    typer.echo(f"{out}: {_counted(_lengths(made))}")


def _open(profile: str) -> progress.Store:
    file = progress.progress_file(profile)
    if not file.is_file():
        raise UserError(f"the profile {profile!r} has no progress yet: there is no {file}")
    return progress.Store(file)


def read_progress(file: Path, profile: str) -> None:
    """Add the progress in a file to a profile's: all of it or nothing. A profile that isn't there is made
    only once the whole file was checked.

    Raises:
        UserError: the file can't be read, or has a fault; nothing was changed, and no profile was made.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: can't be read: {error.strerror or error}") from None
    try:
        kept = progress.progress_file(profile)
    except progress.ProgressError as error:
        raise UserError(str(error)) from None
    new = not kept.is_file()
    clock = progress.now()
    try:
        if new:
            _try(content, clock)
        store = progress.Store(kept)
        try:
            added = progress.import_text(store, content, clock=clock)
        finally:
            store.close()
    except progress.ProgressError as error:
        none = f" The profile {profile!r} was not made." if new and not kept.is_file() else ""
        raise UserError(f"{file}: {error}{none}") from None
    read = _lengths(json.loads(content))
    fresh = {kind: added[kind] for kind in read}
    known = {kind: read[kind] - fresh[kind] for kind in read}
    typer.echo(f"{file}: read {_counted(read)}")
    whose = f"Profile {profile!r}{' (new)' if new else ''}"
    if added["ahead"]:
        typer.echo(
            f"{added['ahead']} of the entries were written under a later clock than this one, and count from "
            "now. If the clock of this machine is behind, set it right and import the file again."
        )
    known_already = f"known already: {_counted(known)}; refused: nothing"
    typer.echo(
        f"{whose}: added {_counted(fresh)}; {known_already}. Its settings are now those of the file. "
        f"It is kept in {kept}"
    )


def _try(content: bytes, clock: int) -> None:
    """Import into a place that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="headwise-import-") as scratch:
        store = progress.Store(Path(scratch) / "tried.sqlite3")
        try:
            progress.import_text(store, content, clock=clock)
        finally:
            store.close()


KINDS = ("reviews", "undos", "answers", "marks")


def _lengths(made: Mapping[str, Any]) -> dict[str, int]:
    """How many entries of each kind an export holds."""
    return {kind: len(made[kind]) for kind in KINDS}


def _counted(counts: Mapping[str, int]) -> str:
    """In words; kinds of which there are none are left out."""
    return counted({kind: count for kind, count in counts.items() if count}) or "nothing"
