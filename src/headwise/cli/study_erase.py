"""`headwise study erase`: a profile's progress, gone for good."""

from __future__ import annotations

from typing import Annotated

import typer

from headwise.cli.counts import counted
from headwise.cli.errors import UserError, one_line_errors


def erase(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="Whose progress: a name, such as default.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Erase all progress of a profile: reviews, answers and marks. Settings and other profiles stay."""
    with one_line_errors():
        _erase(profile, yes=yes)


def _erase(profile: str, *, yes: bool) -> None:
    from headwise.study import progress  # only now: it takes a while to import

    try:
        file = progress.progress_file(profile)
        if not file.is_file():
            raise UserError(f"the profile {profile!r} has no progress: there is no {file}")
        store = progress.Store(file)
        try:
            if not yes and not _agreed(profile, str(file), counted(progress.kept(store))):
                typer.echo("Nothing was erased.")
                raise typer.Exit(1)
            gone = progress.erase_progress(store)
        finally:
            store.close()
    except progress.ProgressError as error:
        raise UserError(str(error)) from None
    typer.echo(f"Erased from the profile {profile!r}: {counted(gone)}.")


def _agreed(profile: str, file: str, lost: str) -> bool:
    """Name what is lost and how to keep it, and ask."""
    typer.echo(f"The profile {profile!r} holds {lost}, of all guides: {file}")
    typer.echo(f"To keep them, first: headwise study export --profile {profile} -o progress.json")
    try:
        return typer.confirm("Erase them for good?")
    except typer.Abort:
        raise UserError("nothing was erased: answer y, or write --yes where nobody can answer") from None
