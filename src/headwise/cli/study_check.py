"""`headwise study check`: whether a guide keeps its own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import end_with_reader, one_line_errors


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The guide's folder.")],
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run the code of lessons and questions too."),
    ] = True,
) -> None:
    """Check a guide: sources, numbers, quizzes, links, formulas, code and spelling. Faults are printed as
    file:line: what is wrong; the exit status is 1 if there are any. Warnings alone leave it 0."""
    with one_line_errors():
        end_with_reader()
        from headwise.study.check import check_guide  # only now: it takes a while to import

        faults = check_guide(folder, run=run)
        for fault in faults:
            typer.echo(str(fault))
        errors = sum(not fault.warning for fault in faults)
        typer.echo(_told(errors, len(faults) - errors, folder), err=bool(errors))
        if errors:
            raise typer.Exit(1)


def _told(errors: int, warnings: int, folder: Path) -> str:
    counted = [
        f"{count} {name}{'' if count == 1 else 's'}"
        for count, name in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return f"{folder}: {', '.join(counted) or 'nothing to complain of'}"
