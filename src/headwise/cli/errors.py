"""What a user did that can't be done: one line, and exit code 2."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake in what the command was given. The message names the value, the rule and the fix."""


def end_with_reader() -> None:
    """`headwise see | head` ends quietly, as other tools do, once nobody reads on. Only for commands that
    print and do nothing else: a training must outlive its reader."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a `UserError` into one line on stderr and exit code 2."""
    try:
        yield
    except UserError as error:
        line = printable(" ".join(str(error).split()))
        print(f"headwise: {line}", file=sys.stderr)
        sys.exit(2)


def printable(text: str) -> str:
    """Control characters written out (\\x1b), so that no file's name or token can command a terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
