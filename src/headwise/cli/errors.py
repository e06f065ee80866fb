"""What a user did that can't be done: one line, and exit code 2."""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

OUTPUT = 1  # standard output, as the system numbers it


class UserError(Exception):
    """A mistake in what the command was given. The message names the value, the rule and the fix."""


def end_with_reader() -> None:
    """`headwise see | head` ends quietly, as other tools do, once nobody reads on. Only for commands that
    print and do nothing else: a training must outlive its reader.

    Other pipes and sockets of the process whose readers are gone raise BrokenPipeError as ever.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, _end_if_unread)


def _end_if_unread(number: int, frame: FrameType | None) -> None:
    """End as the signal ends other tools, if it is the output that nobody reads; it names no pipe itself."""
    output = select.poll()
    output.register(OUTPUT, 0)  # errors are told unasked
    if output.poll(0):
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a `UserError`, or an instruction set that can't be had, into one line on stderr and exit code
    2."""
    try:
        yield
    except (UserError, ValueError) as error:
        if isinstance(error, ValueError) and not _of_the_environment(error):
            raise
        line = printable(" ".join(str(error).split()))
        print(f"headwise: {line}", file=sys.stderr)
        sys.exit(2)


def _of_the_environment(error: ValueError) -> bool:
    """Whether it is told by the first call that computes, since it is about how the command was started."""
    from headwise.kernels.native_build import NoSuchSet  # with torch, which is there by now

    return isinstance(error, NoSuchSet)


def printable(text: str) -> str:
    """Control characters written out (\\x1b), so that no file's name or token can command a terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
