"""`headwise study`: the guide, in a browser."""

from __future__ import annotations

from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.study.progress import ProgressError
from headwise.study.server.run import NoPort
from headwise.study.server.run import serve as run
from headwise.study.visuals.facts import guide_folder


def serve(guides: list[Path], *, port: int | None, browser: bool, profile: str) -> None:
    """See `headwise study --help`.

    Raises:
        UserError: a folder without a guide, a port that is none, a profile's name that is none, a guide with
            errors, progress that can't be used.
    """
    if port is not None and not 0 <= port <= 65535:
        raise UserError(f"--port {port}: ports are 0 (any that is free) to 65535")
    try:
        folders = guides or [guide_folder()]
        for folder in folders:
            if not (folder / "guide.toml").is_file():
                raise UserError(f"--guide {folder}: there is no guide.toml in it: name the folder of a guide")
        run(folders, port=port, profile=profile, open_browser=browser, tell=typer.echo)
    except (ValueError, ProgressError, NoPort) as error:
        raise UserError(str(error)) from None
