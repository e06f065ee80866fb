"""`headwise summarize`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import typer

from headwise.applications.registry import application_of
from headwise.applications.summarization import Summarizer
from headwise.cli.errors import UserError, printable
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.text import read_text


def summarize(run: Path, argument: str, *, beam: int, checkpoint: str, as_json: bool) -> None:
    """See `headwise summarize --help`.

    Raises:
        UserError: no run of a summarization, a file that can't be read, an empty text.
    """
    which = checkpoint_named(checkpoint)
    at_least_one("beam", beam)
    text = read_text(argument)
    with told_plainly():
        application = application_of(run)
        if application.name != "summarization":
            raise UserError(f"run {run} is of application {application.name!r}: it doesn't summarize")
        trained = cast(Summarizer, application.open(run, which, lambda line: print(line, file=sys.stderr)))
        (written,) = trained.summarize([text.content], beam=beam)
    if as_json:
        typer.echo(json.dumps({"origin": text.origin, "output": written}, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(written))
