"""`headwise study anki`, `export` and `import`: what a learner takes elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import one_line_errors

commands = typer.Typer()
Profile = Annotated[
    str, typer.Option(metavar="NAME", help="Whose progress: each name has a file of its own.")
]


@commands.command()
def anki(
    guide: Annotated[
        Path | None,
        typer.Argument(metavar="GUIDE", help="The folder of a guide; that of headwise if not given."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to; an .apkg file.")] = Path(
        "cards.apkg"
    ),
) -> None:
    """Write the flashcards of a guide as a file for Anki. Importing a later one updates the same cards."""
    with one_line_errors():
        from headwise.cli.study_anki import write

        write(guide, out)


@commands.command(name="export")
def export_progress(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to; standard output if not given."),
    ] = None,
    profile: Profile = "default",
) -> None:
    """Write all progress (reviews, answers, marks, settings) as one JSON file."""
    with one_line_errors():
        from headwise.cli.study_transfer import write_progress

        write_progress(out, profile)


@commands.command(name="import")
def import_progress(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `headwise study export` wrote.")],
    profile: Profile = "default",
) -> None:
    """Read progress back: what is missing is added, and nothing is replaced but the settings. The whole file
    is checked first; one with a fault changes nothing and makes no profile."""
    with one_line_errors():
        from headwise.cli.study_transfer import read_progress

        read_progress(file, profile)
