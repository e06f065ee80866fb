"""`headwise study` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.errors import UserError, one_line_errors
from headwise.cli.study_build import build
from headwise.cli.study_check import check
from headwise.cli.study_erase import erase
from headwise.cli.study_new import new
from headwise.cli.study_progress import Profile
from headwise.cli.study_progress import commands as of_progress
from headwise.cli.study_publish import publish
from headwise.cli.study_verify import verify

study = typer.Typer(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (build, check, new, verify, publish):
    study.command()(command)
study.add_typer(of_progress)
study.command()(erase)


@study.callback()
def serve(
    context: typer.Context,
    guide: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="A guide of your own, instead of the one that comes with headwise."
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="The port of 127.0.0.1 to listen on, 0 for any that is free; 8417 if not given. If it is in "
            "use, a free one is taken and told.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the guide in a browser.")
    ] = True,
    profile: Profile = "default",
) -> None:
    """Study "Attention Is All You Need": lessons, visuals, quizzes and flashcards, on this machine alone.

    Without a command, this opens the guide.
    """
    if context.invoked_subcommand is not None:
        if guide or port is not None or not browser or profile != "default":
            with one_line_errors():
                raise UserError(
                    "--guide, --port, --no-browser and --profile before a command belong to `headwise study` "
                    f"alone: write them after {context.invoked_subcommand}, if it has them"
                )
        return
    with one_line_errors():
        from headwise.cli.study_serve import serve as command  # only now: it takes a while to import

        command(guide or [], port=port, browser=browser, profile=profile)
