"""The `headwise` command: checks that what it needs is installed, then hands over to `app`."""

from __future__ import annotations

import sys

NEEDS = ("jinja2", "rich", "safetensors", "tokenizers", "typer")


def run() -> None:
    """Entry point of the `headwise` script and of `python -m headwise`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a token that the terminal can't show must not end the run
    try:
        from headwise.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDS:
            raise
        print(f"headwise: this command needs {error.name}: pip install 'headwise[see]'", file=sys.stderr)
        sys.exit(2)
    app()
