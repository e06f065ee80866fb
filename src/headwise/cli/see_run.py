"""`headwise see RUN INPUT`: the heads of a trained run on one input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from headwise.applications.question_answering import Answerer
from headwise.applications.registry import application_of
from headwise.applications.speech_trained import Transcriber
from headwise.applications.summarization import Summarizer
from headwise.applications.translation import Translator
from headwise.applications.vision_trained import Classifier
from headwise.cli.errors import UserError
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.runs.jsonout import as_json as view_as_json
from headwise.cli.runs.pictures import picture
from headwise.cli.runs.report import render
from headwise.cli.runs.sounds import sound
from headwise.cli.runs.table import print_view
from headwise.cli.runs.texts import answer, summary, translation
from headwise.cli.runs.view import View
from headwise.cli.see import REPORT, check_target
from headwise.cli.text import read_text
from headwise.cli.trained import say
from headwise.cli.whole_file import write


@dataclass(frozen=True)
class Options:
    """What belongs to one kind of run or another.

    Args:
        beam: hypotheses of the beam search; None: 4
    """

    question: str | None = None
    beam: int | None = None
    invert: bool = False
    checkpoint: str = "best"


def see_run(
    words: Sequence[str],
    options: Options,
    *,
    layer: int | None,
    head: int | None,
    out: str | None,
    as_json: bool,
    open_report: bool,
) -> None:
    """See `headwise see --help`.

    Raises:
        UserError: whatever was given that can't be done, before anything is written.
    """
    if out is not None and not out.strip():
        raise UserError(f"--out is empty: name a file, such as {REPORT}")
    target = Path(out) if out is not None else None if as_json else REPORT
    if target is not None:
        check_target(target)
    at_least_one("beam", options.beam)
    with told_plainly():
        view = look_at(words, options)
    for what, number, count in (
        ("layer", layer, max(part.layers for part in view.parts)),
        ("head", head, max(part.heads for part in view.parts)),
    ):
        if number is not None and not 0 <= number < count:
            raise UserError(f"--{what} {number}: run {view.run} has {what}s 0 to {count - 1}")
    if target is not None:
        write(target, render(view, layer=layer, head=head))
    if as_json:
        typer.echo(json.dumps(view_as_json(view, layer=layer, head=head), ensure_ascii=False, indent=1))
    else:
        console = Console(file=sys.stdout, soft_wrap=False)
        print_view(console, view, layer=layer, head=head)
        if target is not None:
            console.print()
            console.print(f"Report: {target.resolve()}", style="bold", highlight=False, soft_wrap=True)
    if open_report and target is not None:
        typer.launch(target.resolve().as_uri())


def look_at(words: Sequence[str], options: Options) -> View:
    """Run a run on its input.

    Args:
        words: its folder, and the input

    Raises:
        UserError: no input, several, or one that this run can't read; options of another kind of run.
        DataError, RunError, CheckpointError, MissingExtra: see `Application.open`.
    """
    folder, which = Path(words[0]), checkpoint_named(options.checkpoint)
    application = application_of(folder)
    name = application.name
    wants = {"vision": "an image file", "speech": "a wav file"}.get(name, "a text in quotes or a text file")
    if len(words) != 2:
        raise UserError(
            f"run {folder} is of application {name!r} and looks at one input: give {wants} after it"
            + (f", not {len(words) - 1}" if len(words) > 2 else "")
        )
    _check_options(name, options)
    argument, beam = words[1], 4 if options.beam is None else options.beam
    if name in ("vision", "speech"):
        origin, text = argument, ""
    else:
        given = read_text(argument)
        origin, text = given.origin, given.content
    trained: Any = application.open(folder, which, say)
    if isinstance(trained, Translator):
        found: tuple[Any, Any, Any] = translation(trained, text, beam=beam)
    elif isinstance(trained, Summarizer):
        found = summary(trained, text, beam=beam)
    elif isinstance(trained, Answerer):
        found = answer(trained, options.question or "", text)
    elif isinstance(trained, Classifier):
        found = picture(trained, Path(argument), invert=options.invert)
    elif isinstance(trained, Transcriber):
        found = sound(trained, Path(argument), beam=beam)
    else:
        raise UserError(f"run {folder} is of application {name!r}, whose heads can't be shown yet")
    result, parts, notes = found
    return View(name, folder.resolve().name, which, origin, result, tuple(parts), tuple(notes))


def _check_options(name: str, options: Options) -> None:
    asks = name == "question-answering"
    if asks and options.question is None:
        raise UserError('a run of question answering needs a question: --question "..."')
    for option, given, fits in (
        ("--question", options.question is not None, asks),
        ("--invert", options.invert, name == "vision"),
        ("--beam", options.beam is not None, name in ("translation", "summarization", "speech")),
    ):
        if given and not fits:
            raise UserError(f"{option} is of no use to a run of application {name!r}: leave it out")
