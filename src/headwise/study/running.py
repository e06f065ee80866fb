"""Runs the code that a guide shows: the blocks of lessons, and the traces of questions about shapes."""

from __future__ import annotations

import contextlib
import io
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch

import headwise
from headwise.study.content.fences import fences
from headwise.study.content.lesson import Block, Lesson
from headwise.study.content.quiz import Question
from headwise.study.errors import GuideError


@dataclass(frozen=True)
class Ran:
    """What running a block gave.

    Attributes:
        output: what it printed.
        seconds: how long it took.
        error: None if it came to its end.
    """

    output: str
    seconds: float
    error: GuideError | None = None


def run_lesson(lesson: Lesson, folder: Path | str) -> dict[str, Ran]:
    """Run the code of a lesson: what its `code` blocks and solutions print, by the block's id.

    They run one after another in reading order and share their names, so that a later block may go on where
    an earlier one stopped; `hw` and `torch` are there from the start. Each begins with the same seed. The
    caller's random numbers stay as they were.

    Args:
        folder: of the guide, for errors.
    """
    names = _names()
    name = str(Path(folder) / lesson.file)
    return {
        block.id: _run(block, names, name) for block in lesson.walk() if block.kind in ("code", "solution")
    }


def shape_of(question: Question, file: str) -> list[int]:
    """The right answer of a question about a shape: that of what its `ask` gives after its `code` has run.

    Args:
        file: that the question stands in, for errors.

    Raises:
        GuideError: the code fails, or what it asks for is no shape.
    """
    names = _names()
    try:
        with _apart():
            exec(compile(question.code, f"<{question.id}>", "exec"), names)
            found = eval(compile(question.ask, f"<{question.id}: ask>", "eval"), names)
    except (Exception, SystemExit) as error:
        raise GuideError(f"{question.id}: the code fails: {_told(error)}", file, question.line) from None
    if isinstance(found, torch.Tensor):
        found = found.shape
    if not isinstance(found, tuple | list) or not all(type(size) is int for size in found):
        message = f"{question.id}: ask = {question.ask!r} gives {found!r}: it must give a shape, like x.shape"
        raise GuideError(message, file, question.line)
    return list(found)


def _names() -> dict[str, Any]:
    """What code finds."""
    return {"hw": headwise, "torch": torch, "__name__": "lesson"}


def _run(block: Block, names: dict[str, Any], file: str) -> Ran:
    printed = io.StringIO()
    start = time.perf_counter()
    error = None
    try:
        with _apart(), contextlib.redirect_stdout(printed):
            for fence in fences(block.body, block.body_line):
                if fence.language == "python":
                    exec(_compiled(fence.code, file, fence.line), names)
    except (Exception, SystemExit) as failure:
        line = next(
            (
                frame.lineno
                for frame in reversed(traceback.extract_tb(failure.__traceback__))
                if frame.filename == file
            ),
            failure.lineno if isinstance(failure, SyntaxError) else None,
        )
        error = GuideError(f"the code of #{block.id} fails: {_told(failure)}", file, line or block.line)
    return Ran(printed.getvalue(), time.perf_counter() - start, error)


def _compiled(code: str, file: str, line: int) -> CodeType:
    """The code, whose lines are counted as in the file."""
    return compile("\n" * (line - 1) + code, file, "exec")


def _told(error: BaseException) -> str:
    """An error in one line."""
    said = error.msg if isinstance(error, SyntaxError) else str(error).strip()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """The same random numbers every time, and none of the caller's; grad mode and dtype are put back."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            yield
        finally:
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
