"""`headwise summarize`."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from headwise.applications.summarization import Summarizer
from headwise.cli.errors import printable
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.text import read_text
from headwise.cli.trained import trained_for


def summarize(run: Path, argument: str, *, beam: int, checkpoint: str, as_json: bool) -> None:
    """See `headwise summarize --help`.

    Raises:
        UserError: no run of a summarization, a file that can't be read, an empty text.
    """
    which = checkpoint_named(checkpoint)
    at_least_one("beam", beam)
    text = read_text(argument)
    with told_plainly():
        trained: Summarizer = trained_for(run, "summarization", "summarize", which)
        (written,) = trained.summarize([text.content], beam=beam)
    if as_json:
        typer.echo(json.dumps({"origin": text.origin, "output": written}, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(written))
