"""`headwise transcribe`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from headwise.applications.speech_model import DECODERS
from headwise.applications.speech_trained import Transcriber
from headwise.cli.errors import UserError, printable
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.trained import say, trained_for


def transcribe(
    run: Path, files: Sequence[Path], *, decoder: str, beam: int, checkpoint: str, as_json: bool
) -> None:
    """See `headwise transcribe --help`. What had to be changed to read a file is said on standard error.

    Raises:
        UserError: no run of speech, a file that is no sound, a decoder that the run doesn't have.
    """
    which = checkpoint_named(checkpoint)
    at_least_one("beam", beam)
    if decoder not in DECODERS:
        raise UserError(f"--decoder {decoder}: choose {' or '.join(DECODERS)}")
    with told_plainly():
        trained: Transcriber = trained_for(run, "speech", "transcribe sound", which)
        trained.check_decoder(decoder)
        found = [trained.transcribe(file, decoder=decoder, beam=beam) for file in files]
    if as_json:
        rows = [
            {"input": str(file), "output": one.text, "seconds": one.seconds, "notes": one.notes}
            for file, one in zip(files, found, strict=True)
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for file, one in zip(files, found, strict=True):
        for note in one.notes:
            say(f"{file}: {note}")
        if not one.text:
            say(f"{file}: nothing was heard in {one.seconds:.1f} s")
        typer.echo(printable(one.text if len(files) == 1 else f"{file}: {one.text}"))
