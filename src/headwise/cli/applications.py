"""`headwise train`, `evaluate`, `translate` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import end_with_reader, one_line_errors
from headwise.cli.options import number, whole

commands = typer.Typer()

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")]
Beam = Annotated[
    int, typer.Option(parser=whole, metavar="N", help="Hypotheses of the beam search; 1 is greedy.")
]
Checkpoint = Annotated[
    str,
    typer.Option(metavar="WHICH", help="best, last, or average (the mean of the last ones that are kept)."),
]
Text = Annotated[
    str,
    typer.Argument(metavar="FILE|TEXT|-", help="A text file, a text in quotes, or - for standard input."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]


@commands.command()
def train(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="translation, summarization, question-answering, vision or speech."
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR|FILE",
            help="The data: a folder with train, val and test files, or a file; for translation also two "
            "files that fit line by line, by --data twice; or hub:OWNER/NAME of the Hugging Face hub.",
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(parser=number, metavar="MINUTES", help="Stop after so many minutes.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be given many times."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run's folder; runs/NAME if not given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, with its own settings and data.")
    ] = False,
    list_settings: Annotated[
        bool, typer.Option("--list-settings", help="Print all settings and their values, and do nothing.")
    ] = False,
) -> None:
    """Train a model for an application, on your data."""
    with one_line_errors():
        from headwise.cli.train import train as command

        command(
            name,
            data=data or [],
            budget=budget,
            changes=changes or [],
            out=out,
            resume=resume,
            list_settings=list_settings,
        )


@commands.command()
def evaluate(
    run: Run,
    data: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR|FILE", help="Other data than the run's own, given as for train."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    beam: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Hypotheses of the beam search, where there is one."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Only the first examples.")
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For speech: ctc (the encoder alone) or attention (the decoder)."),
    ] = None,
    checkpoint: Checkpoint = "best",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write input, output and reference of each example here, as JSON lines."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a trained run on data that it hasn't seen, beside what needs no learning."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.evaluate import evaluate as command

        options = {"beam": beam, "limit": limit, "decoder": decoder}
        command(
            run,
            data=data or None,
            split=split,
            options={name: value for name, value in options.items() if value is not None},
            checkpoint=checkpoint,
            out=out,
            as_json=as_json,
        )


@commands.command()
def summarize(
    run: Run,
    file: Text,
    beam: Beam = 4,
    checkpoint: Checkpoint = "best",
    as_json: AsJson = False,
) -> None:
    """Summarize a text with a trained run."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.summarize import summarize as command

        command(run, file, beam=beam, checkpoint=checkpoint, as_json=as_json)


@commands.command()
def answer(
    run: Run,
    file: Text,
    question: Annotated[str, typer.Option(metavar="TEXT", help="What is asked of the text.")],
    checkpoint: Checkpoint = "best",
    as_json: AsJson = False,
) -> None:
    """Answer a question by a span of a text, with a trained run."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.answer import answer as command

        command(run, file, question=question, checkpoint=checkpoint, as_json=as_json)


@commands.command()
def translate(
    run: Run,
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT...|-", help="Texts in quotes, or - for standard input, a text a line."),
    ],
    beam: Beam = 4,
    checkpoint: Checkpoint = "best",
    as_json: AsJson = False,
) -> None:
    """Translate texts with a trained run, a line each."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.translate import translate as command

        command(run, text, beam=beam, checkpoint=checkpoint, as_json=as_json)
