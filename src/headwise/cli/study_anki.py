"""`headwise study anki`: the flashcards of a guide, for Anki."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.cli.study_build import first_fault
from headwise.study.anki import AnkiError, write_package
from headwise.study.content import load_guide
from headwise.study.errors import GuideError
from headwise.study.visuals.facts import guide_folder


def write(folder: Path | None, out: Path) -> None:
    """Write the package of a guide.

    Raises:
        UserError: the guide has errors or no cards, or the file can't be written.
    """
    if out.suffix != ".apkg":
        raise UserError(f"--out {out}: Anki opens files that end in .apkg: name one, such as cards.apkg")
    try:
        written = write_package(load_guide(folder or guide_folder()), out)
    except GuideError as error:
        raise first_fault(error, folder or guide_folder()) from None
    except (ValueError, AnkiError) as error:
        raise UserError(str(error)) from None
    retired = f", {written.retired} of them retired" if written.retired else ""
    of = "the guide as it stands" if written.version is None else f"version {written.version} of the guide"
    typer.echo(f"{out}: {written.cards} cards{retired}, of {of}. Next: File > Import in Anki")
    if written.version is None:
        typer.echo(_unpublished(folder))


def _unpublished(folder: Path | None) -> str:
    """What it means for a learner that a guide has no version yet, and what its author can run."""
    means = "This guide has no published version yet. Anki takes edits of cards that it has from a later one:"
    if folder is None:
        return f"{means} after headwise is updated, write the file again and import it"
    return f'{means} headwise study publish {shlex.quote(str(folder))} --note "What changed", then this again'
