"""`headwise answer`."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from headwise.applications.question_answering import NAME, Answerer
from headwise.cli.errors import printable
from headwise.cli.mistakes import checkpoint_named, told_plainly
from headwise.cli.text import read_text
from headwise.cli.trained import trained_for


def answer(run: Path, argument: str, *, question: str, checkpoint: str, as_json: bool) -> None:
    """See `headwise answer --help`.

    Raises:
        UserError: no run of question answering, a file that can't be read, an empty text or question.
    """
    which = checkpoint_named(checkpoint)
    text = read_text(argument)
    with told_plainly():
        trained: Answerer = trained_for(run, NAME, "answer questions", which)
        found = trained.answer(question, text.content)
    if as_json:
        told = {"origin": text.origin, "question": question, "output": found}
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(found))
