"""`headwise classify`, `headwise transcribe` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.applications import AsJson, Beam, Checkpoint, Run
from headwise.cli.errors import end_with_reader, one_line_errors
from headwise.cli.options import whole

commands = typer.Typer()


@commands.command()
def classify(
    run: Run,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Image files.")],
    invert: Annotated[
        bool,
        typer.Option(
            "--invert", help="Exchange light and dark first: MNIST and the digits are light on dark."
        ),
    ] = False,
    top: Annotated[
        int, typer.Option(parser=whole, metavar="N", help="How many classes to name for each.")
    ] = 3,
    checkpoint: Checkpoint = "best",
    as_json: AsJson = False,
) -> None:
    """Say what images show with a trained run, a line each."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.classify_images import classify_images as command

        command(run, images, invert=invert, top=top, checkpoint=checkpoint, as_json=as_json)


@commands.command()
def transcribe(
    run: Run,
    files: Annotated[list[Path], typer.Argument(metavar="FILE.wav...", help="Sound files: wav, PCM.")],
    decoder: Annotated[
        str, typer.Option(metavar="NAME", help="ctc (the encoder alone) or attention (the decoder).")
    ] = "ctc",
    beam: Beam = 4,
    checkpoint: Checkpoint = "best",
    as_json: AsJson = False,
) -> None:
    """Write down what is said in sound files with a trained run, a line each."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.transcribe import transcribe as command

        command(run, files, decoder=decoder, beam=beam, checkpoint=checkpoint, as_json=as_json)
