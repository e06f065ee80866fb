"""`headwise study build`: a guide as a folder of pages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import UserError, one_line_errors


def build(
    guide: Annotated[Path, typer.Argument(metavar="GUIDE", help="The guide's folder.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to; an earlier site there is replaced."),
    ] = Path("site"),
) -> None:
    """Write a guide as a folder that any static host serves."""
    with one_line_errors():
        from headwise.study.content import load_guide
        from headwise.study.errors import GuideError
        from headwise.study.site import BuildError, build_site

        start = time.perf_counter()
        try:
            count = build_site(load_guide(guide), out)
        except GuideError as error:
            more = f" (and {len(error.others)} more: headwise study check {guide})" if error.others else ""
            raise UserError(f"{error}{more}") from error
        except BuildError as error:
            raise UserError(str(error)) from error
        typer.echo(f"{out}: {count} files, {time.perf_counter() - start:.1f} s")
