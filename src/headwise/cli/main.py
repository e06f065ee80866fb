"""The `headwise` command: checks that what it needs is installed, then hands over to `app`."""

from __future__ import annotations

import sys

NEEDS = ("jinja2", "rich", "safetensors", "tokenizers", "typer")


def run() -> None:
    """What the `headwise` script (by way of `headwise_command`) and `python -m headwise` run."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a token that the terminal can't show must not end the run
    try:
        from headwise.cli.app import app

        app()
    except ModuleNotFoundError as error:  # the parts of the command are imported when they are needed
        if error.name is None or error.name.partition(".")[0] not in NEEDS:
            raise
        print(
            f"headwise: this needs {error.name}, which is missing: pip install 'headwise[see]'",
            file=sys.stderr,
        )
        sys.exit(2)
