"""`headwise study build`: a guide as a folder of pages."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.errors import UserError, one_line_errors

if TYPE_CHECKING:
    from headwise.study.errors import GuideError


def build(
    guide: Annotated[Path, typer.Argument(metavar="GUIDE", help="The guide's folder.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to; an earlier site there is replaced."),
    ] = Path("site"),
) -> None:
    """Write a guide as a folder that any static host serves."""
    with one_line_errors():
        from headwise.study.content import load_guide  # only now: it takes a while to import
        from headwise.study.errors import GuideError
        from headwise.study.site import BuildError, build_site

        start = time.perf_counter()
        try:
            count = build_site(load_guide(guide), out)
        except GuideError as error:
            raise first_fault(error, guide) from error
        except BuildError as error:
            raise UserError(str(error)) from error
        typer.echo(f"{out}: {count} files, {time.perf_counter() - start:.1f} s")
        typer.echo(f"Next: {look(out)}\nand open http://127.0.0.1:8000/; or copy the folder to any web host")


def look(out: Path) -> str:
    """The command that shows a site on this machine. Browsers run no modules of pages opened as files."""
    return f"python -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(out))} 8000"


def first_fault(error: GuideError, guide: Path) -> UserError:
    """The first fault of a guide, and how to see the others."""
    more = f" (and {len(error.others)} more: headwise study check {guide})" if error.others else ""
    return UserError(f"{error}{more}")
