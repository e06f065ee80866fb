"""`headwise translate`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from headwise.applications.translation import Translator
from headwise.cli.errors import UserError, printable
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.text import looks_like_path
from headwise.cli.trained import trained_for


def translate(run: Path, texts: Sequence[str], *, beam: int, checkpoint: str, as_json: bool) -> None:
    """See `headwise translate --help`.

    Raises:
        UserError: no run of a translation, a file in place of a text, an empty text.
    """
    which = checkpoint_named(checkpoint)
    at_least_one("beam", beam)
    for text in texts:
        if looks_like_path(text) and Path(text).is_file():
            raise UserError(
                f"{text} is a file: give its lines on standard input: "
                f"headwise translate {shlex.quote(str(run))} - < {shlex.quote(text)}"
            )
    lines = _lines(texts)
    with told_plainly():
        trained: Translator = trained_for(run, "translation", "translate", which)
        written = trained.translate(lines, beam=beam)
    if as_json:
        pairs = [{"input": one, "output": other} for one, other in zip(lines, written, strict=True)]
        typer.echo(json.dumps(pairs, ensure_ascii=False, indent=2))
        return
    for line in written:
        typer.echo(printable(line))


def _lines(texts: Sequence[str]) -> list[str]:
    """The texts; of standard input every line, empty ones too, so that lines stay together."""
    if list(texts) == ["-"]:
        try:
            lines = sys.stdin.buffer.read().decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"standard input is no UTF-8 text (byte {error.start})") from None
        if lines and not lines[-1]:
            lines.pop()
        texts = [line.rstrip("\r") for line in lines]
    if not any(text.strip() for text in texts):
        raise UserError("the text is empty: give at least one word")
    return list(texts)
