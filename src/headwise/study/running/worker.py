"""The process that runs a guide's code: one after another, each job with fresh names, each step with the same
random numbers, on one thread, and none for longer than its time."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
import torch

import headwise
from headwise.study.running.jobs import Begun, Did, Ended, Event, Job, Shape, Step, Work


def main() -> None:
    """Run the jobs that come as JSON; tell events as lines of JSON."""
    work = msgspec.json.decode(sys.stdin.buffer.read(), type=Work)
    tell = Teller(_own_streams())
    torch.set_num_threads(1)
    watch = Watch(tell, work.limit)
    for number, job in enumerate(work.jobs):
        run_job(number, job, tell, watch)
    tell(Ended())
    sys.stdout.flush()
    os._exit(0)  # threads that the code left behind hold nothing up


def _own_streams() -> BinaryIO:
    """The way out, for events alone: the code reads nothing, and what it prints past Python goes nowhere."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return out


class Teller:
    """Writes events, one at a time."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.lock = threading.RLock()

    def __call__(self, event: Event) -> None:
        with self.lock:
            self._out.write(msgspec.json.encode(event) + b"\n")


class Watch:
    """Ends the process when a step takes too long, and tells in which line it was."""

    def __init__(self, tell: Teller, limit: float) -> None:
        self._tell = tell
        self._limit = limit
        self._main = threading.get_ident()
        self._step: tuple[int, int, str, io.StringIO] | None = None
        self._until = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    @contextlib.contextmanager
    def over(self, job: int, step: int, file: str, printed: io.StringIO) -> Iterator[None]:
        """Watch over a step."""
        with self._tell.lock:
            self._until = time.monotonic() + self._limit
            self._step = job, step, file, printed
        try:
            yield
        finally:
            with self._tell.lock:
                self._step = None

    def _look(self) -> None:
        while True:
            time.sleep(0.05)
            with self._tell.lock:
                if self._step is None or time.monotonic() < self._until:
                    continue
                job, step, file, printed = self._step
                frame, line = sys._current_frames().get(self._main), None
                while frame is not None and line is None:
                    line = frame.f_lineno if frame.f_code.co_filename == file else None
                    frame = frame.f_back
                self._tell(
                    Did(job, step, _text(printed.getvalue()), self._limit, late(self._limit), line, lost=True)
                )
                os._exit(0)


def late(limit: float) -> str:
    """What is said of a step that took too long."""
    return f"it had not ended after {limit:g} s: is there a loop without end, or can it be smaller?"


def run_job(number: int, job: Job, tell: Teller, watch: Watch) -> None:
    """Run the steps of a job, and what it asks for."""
    names: dict[str, Any] = {"hw": headwise, "torch": torch, "__name__": "lesson"}
    failed = ""
    for place, step in enumerate(job.steps):
        tell(Begun(number, place))
        printed = io.StringIO()
        start = time.perf_counter()
        error, line = "", None
        with watch.over(number, place, job.file, printed), contextlib.redirect_stdout(printed):
            try:
                with _apart():
                    _run(step, job.file, names)
                    if job.ask and place == len(job.steps) - 1:
                        tell(_shape(number, job.ask, names))
            except (Exception, SystemExit) as failure:
                error, line = told(failure), line_of(failure, job.file)
        seconds = time.perf_counter() - start
        failed = failed or error
        tell(Did(number, place, _text(printed.getvalue()), seconds, error, line))


def _run(step: Step, file: str, names: dict[str, Any]) -> None:
    for code, line in step.pieces:
        exec(compile("\n" * (line - 1) + code, file, "exec"), names)  # lines are counted as in the file


def _shape(job: int, ask: str, names: dict[str, Any]) -> Shape:
    found = eval(compile(ask, "<ask>", "eval"), names)
    if isinstance(found, torch.Tensor):
        found = found.shape
    if not isinstance(found, tuple | list) or not all(type(size) is int for size in found):
        return Shape(job, gives=_text(repr(found)))
    return Shape(job, shape=tuple(found))


def told(error: BaseException) -> str:
    """An error in one line."""
    said = error.msg if isinstance(error, SyntaxError) else str(error).strip()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _text(f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__)


def line_of(error: BaseException, file: str) -> int | None:
    """The line of the file in which an error came up."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return frame.lineno
    return error.lineno if isinstance(error, SyntaxError) else None


def _text(text: str) -> str:
    """Text that UTF-8 can hold: half of a character is written out."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """The same random numbers every time; grad mode and dtype are put back."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    torch.manual_seed(0)
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
