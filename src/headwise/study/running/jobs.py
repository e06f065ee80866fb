"""What is run in a process of its own, and what that process tells."""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True):
    """Code that prints apart: (code, its first line) of each piece, one after another."""

    pieces: tuple[tuple[str, int], ...]


class Job(msgspec.Struct, frozen=True):
    """Steps that share their names.

    Attributes:
        file: that the code stands in, for lines of errors.
        ask: an expression whose shape is wanted after the last step; "" for none.
    """

    file: str
    steps: tuple[Step, ...]
    ask: str = ""


class Work(msgspec.Struct, frozen=True):
    """What the process is given.

    Attributes:
        limit: seconds for each step.
    """

    jobs: list[Job]
    limit: float


class Begun(msgspec.Struct, frozen=True, tag=True):
    """A step begins. The first of all says that Python and its libraries are there."""

    job: int
    step: int


class Did(msgspec.Struct, frozen=True, tag=True):
    """A step has ended.

    Attributes:
        output: what it printed.
        error: what failed, in a line; "" for nothing.
        line: where in the job's file, if that is known.
        lost: the process has ended with it, and the steps after it were not run.
    """

    job: int
    step: int
    output: str = ""
    seconds: float = 0.0
    error: str = ""
    line: int | None = None
    lost: bool = False


class Shape(msgspec.Struct, frozen=True, tag=True):
    """What `ask` gives: a shape, or else something (`gives`)."""

    job: int
    shape: tuple[int, ...] | None = None
    gives: str = ""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All jobs are done."""


Event = Begun | Did | Shape | Ended
