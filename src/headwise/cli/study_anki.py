"""`headwise study anki`: the flashcards of a guide, for Anki."""

from __future__ import annotations

from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.study.anki import AnkiError, write_package
from headwise.study.content import load_guide
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
    except (ValueError, AnkiError) as error:
        raise UserError(str(error)) from None
    retired = f", {written.retired} of them retired" if written.retired else ""
    typer.echo(f"{out}: {written.cards} cards{retired}, of {written.version}")
