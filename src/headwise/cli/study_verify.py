"""`headwise study verify`: a guide held against the author's own copy of the paper's page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import one_line_errors
from headwise.cli.study_build import first_fault
from headwise.cli.study_new import PAGE, read_html


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The guide's folder.")],
    paper: Annotated[Path, PAGE],
    record: Annotated[
        bool,
        typer.Option("--record", help="Write the hashes of the page's passages into anchors.json."),
    ] = False,
) -> None:
    """Compare a guide's places, quotes and recorded hashes with your own copy of the paper's page. Faults are
    printed as file:line: what is wrong; the exit status is 1 if there are any."""
    with one_line_errors():
        from headwise.study.content import load_guide  # only now: it takes a while to import
        from headwise.study.errors import GuideError
        from headwise.study.paper import compare, read_page
        from headwise.study.paper import record as write

        try:
            guide = load_guide(folder)
            page = read_page(read_html(paper), str(paper))
            found = compare(guide, page)
            written = write(guide, page) if record else 0
        except GuideError as error:
            raise first_fault(error, folder) from None
        faults = found.errors(accept=record)
        for fault in faults:
            typer.echo(str(fault))
        for name in found.new:
            typer.echo(f"new on the page: {name}")
        typer.echo(
            f"{len(found.same)} passages as recorded, {len(found.changed)} changed, "
            f"{len(found.missing)} missing, {len(found.new)} new, {len(found.unrecorded)} without a recorded "
            f"hash, {len(found.quotes)} quotes that aren't there"
        )
        if record:
            typer.echo(f"{written} hashes written into {folder / 'anchors.json'}")
        if faults:
            raise typer.Exit(1)
