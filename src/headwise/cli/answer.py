"""`headwise answer`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import typer

from headwise.applications.question_answering import NAME, Answerer
from headwise.applications.registry import application_of
from headwise.cli.errors import UserError, printable
from headwise.cli.mistakes import checkpoint_named, told_plainly
from headwise.cli.text import read_text


def answer(run: Path, argument: str, *, question: str, checkpoint: str, as_json: bool) -> None:
    """See `headwise answer --help`.

    Raises:
        UserError: no run of question answering, a file that can't be read, an empty text or question.
    """
    which = checkpoint_named(checkpoint)
    text = read_text(argument)
    with told_plainly():
        application = application_of(run)
        if application.name != NAME:
            raise UserError(f"run {run} is of application {application.name!r}: it doesn't answer questions")
        trained = cast(Answerer, application.open(run, which, lambda line: print(line, file=sys.stderr)))
        found = trained.answer(question, text.content)
    if as_json:
        told = {"origin": text.origin, "question": question, "output": found}
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(found))
