"""`headwise study publish`: a guide frozen as its next version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import UserError, one_line_errors
from headwise.cli.study_build import first_fault


def publish(
    guide: Annotated[Path, typer.Argument(metavar="GUIDE", help="The guide's folder.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What changed, in a sentence.")],
) -> None:
    """Freeze a guide as its next version, which stays as it is for ever. One that is the same as its newest
    version is refused."""
    with one_line_errors():
        from headwise.study.content import load_guide  # only now: it takes a while to import
        from headwise.study.errors import GuideError
        from headwise.study.publishing import publish_guide, refuse_faults, refuse_unchanged

        try:
            refuse_faults(guide)
            loaded = load_guide(guide)
            refuse_unchanged(loaded)
            version = publish_guide(loaded, note)
        except GuideError as error:
            raise first_fault(error, guide) from error
        except OSError as error:
            raise UserError(f"{error.filename or guide}: {error.strerror or error}") from error
        typer.echo(f"version {version.number} is published: {guide / 'versions' / f'{version.number}.json'}")
