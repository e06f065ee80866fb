"""`headwise study new`: a guide begun from a paper's page."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import UserError, one_line_errors

PAGE = typer.Option(metavar="FILE", help="The paper's page as LaTeXML made it, saved from arxiv.org/html/...")


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The guide's folder; its name becomes the guide's id.")
    ],
    paper: Annotated[Path, PAGE],
    arxiv: Annotated[
        str,
        typer.Option(metavar="ID", help="The paper's number with version, where the page doesn't tell it."),
    ] = "",
    year: Annotated[
        int | None, typer.Option(metavar="YEAR", help="Of the paper; that of its arXiv number if not given.")
    ] = None,
) -> None:
    """Begin a guide: the places of the paper's page, and a first lesson and quiz to write over. The paper's
    text itself isn't kept."""
    with one_line_errors():
        from headwise.study.errors import GuideError  # only now: it takes a while to import
        from headwise.study.paper import new_guide, read_page

        try:
            page = read_page(read_html(paper), str(paper))
            number = arxiv or page.arxiv
            files = new_guide(page, folder, year=year or _year(number), arxiv=arxiv, file=str(paper))
        except GuideError as error:
            raise UserError(str(error)) from None
        except OSError as error:
            raise UserError(f"{folder} can't be written: {error.strerror}") from None
        typer.echo(f"{page.title}: {len(page.passages)} places" + (f" of {number}" if number else ""))
        for file in files:
            typer.echo(f"  {folder / file}")
        typer.echo(f"Next: write over the first lesson, then headwise study check {folder}")


def read_html(path: Path) -> str:
    """A saved page."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8: save the page again, as a web page") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None


def _year(number: str) -> int:
    """The year of an arXiv number: 1706.03762 is of 2017."""
    return 2000 + int(number[:2]) if number[:2].isdigit() else date.today().year
