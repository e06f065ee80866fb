"""`headwise curves`: the learning curves of runs as pictures."""

from __future__ import annotations

from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.training.curves import draw_curves
from headwise.training.extras import MissingExtra


def curves(runs: list[Path], *, out: Path | None) -> None:
    """See `headwise curves --help`.

    Raises:
        UserError: no such run, a run without figures, a place that can't be written to, matplotlib missing.
    """
    target = out if out is not None else runs[0] / "curves"
    if target.suffix not in ("", ".png", ".svg"):
        raise UserError(f"--out {target}: curves are written as .png and .svg")
    for run in runs:
        if not run.is_dir():
            raise UserError(f"there is no run {run}: train one first, or check the path")
    if not target.parent.is_dir():
        raise UserError(f"--out {target}: there is no folder {target.parent}: make it first")
    try:
        files = draw_curves(runs, target)
    except (ValueError, MissingExtra) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{target}: can't be written: {error.strerror or error}") from None
    for file in files:
        typer.echo(file.resolve())
