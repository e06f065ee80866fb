"""`headwise study`: the guide, in a browser."""

from __future__ import annotations

from pathlib import Path

import typer

from headwise.cli.errors import UserError
from headwise.cli.study_build import first_fault
from headwise.study.content import no_guide
from headwise.study.errors import GuideError
from headwise.study.progress import ProgressError
from headwise.study.server.ports import BLOCKED
from headwise.study.server.run import PORT, NoPages, NoPort
from headwise.study.server.run import serve as run
from headwise.study.visuals.facts import guide_folder


def serve(guides: list[Path], *, port: str | None, browser: bool, profile: str) -> None:
    """See `headwise study --help`.

    Raises:
        UserError: a folder without a guide, a port that is none, a profile's name that is none, a guide with
            errors, progress or pages that can't be kept.
    """
    wanted = None if port is None else _port(port)
    try:
        folders = guides or [guide_folder()]
        for folder in folders:
            none = no_guide(folder)
            if none is not None:
                raise UserError(f"--guide {none}")
        run(folders, port=wanted, profile=profile, open_browser=browser, tell=typer.echo)
    except GuideError as error:
        # An error of no file (no process for the guide's code) is any guide's.
        faulty = next((one for one in folders if Path(error.file).is_relative_to(one)), folders[0])
        raise first_fault(error, faulty) from None
    except (ValueError, ProgressError, NoPages, NoPort) as error:
        raise UserError(str(error)) from None


def _port(given: str) -> int:
    if given.isascii() and given.isdigit() and int(given) <= 65535:
        if int(given) in BLOCKED:
            raise UserError(
                f"--port {given}: browsers open no page at this port, which belongs to another service: take "
                f"another one, such as --port {PORT}, or --port 0 for any that is free"
            )
        return int(given)
    raise UserError(
        f"--port {given}: a port is a whole number from 1 to 65535, or 0 for any that is free, such as "
        f"--port {PORT}"
    )
