"""What a user did that can't be done: one line, and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake in what the command was given. The message names the value, the rule and the fix."""


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
