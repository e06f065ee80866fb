"""The `headwise` command: checks that what it needs is installed, then hands over to `app`."""

from __future__ import annotations

import sys

NEEDS = ("jinja2", "rich", "safetensors", "tokenizers", "typer")
STUDY_NEEDS = (
    *("fsrs", "genanki", "markdown_it", "mdit_py_plugins", "msgspec", "pygments", "selectolax"),
    *("spellchecker", "starlette", "uvicorn"),
)


def run() -> None:
    """What the `headwise` script (by way of `headwise_command`) and `python -m headwise` run."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a token that the terminal can't show must not end the run
    try:
        from headwise.cli.app import app

        app()
    except ModuleNotFoundError as error:  # the parts of the command are imported when they are needed
        package = (error.name or "").partition(".")[0]
        if package not in NEEDS + STUDY_NEEDS:
            raise
        extra = "study" if package in STUDY_NEEDS or sys.argv[1:2] == ["study"] else "see"
        print(
            f"headwise: this needs {error.name}, which is missing: pip install 'headwise[{extra}]'",
            file=sys.stderr,
        )
        sys.exit(2)
