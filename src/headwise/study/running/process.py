"""Starts the process that runs a guide's code, listens to it, and ends it when it takes too long."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, cast

import msgspec

from headwise.study.errors import GuideError
from headwise.study.running.jobs import Begun, Did, Ended, Event, Job, Shape, Work

LIMIT = 60.0
"""Seconds for one step."""
START = 600.0
"""Seconds until Python has imported torch; on a busy machine that takes a while."""
GRACE = 10.0
"""Seconds after which a process that doesn't end itself is ended."""


def run_jobs(
    jobs: Sequence[Job], *, hash_seed: int = 0, limit: float = LIMIT
) -> list[tuple[list[Did], Shape | None]]:
    """Run jobs one after another; what became of the steps of each, and the shape that it asked for.

    A step that takes too long or ends Python ends its job: later steps of it are not run. The other jobs are.

    Args:
        hash_seed: decides in which order Python goes through sets of texts.

    Raises:
        GuideError: Python can't be started.
    """
    done: list[tuple[list[Did], Shape | None]] = [([], None) for _ in jobs]
    first = 0
    while first < len(jobs):
        first = _run_from(jobs, first, done, hash_seed, limit)
    return done


def _run_from(
    jobs: Sequence[Job],
    first: int,
    done: list[tuple[list[Did], Shape | None]],
    hash_seed: int,
    limit: float,
) -> int:
    """Run jobs from `first` on in one process; the place of the one to go on with in another."""
    work = msgspec.json.encode(Work(list(jobs[first:]), limit))
    at: Begun | None = None
    with tempfile.TemporaryFile() as said, _program(work, said, hash_seed) as (program, events):
        while True:
            try:
                event = events.get(timeout=limit + GRACE if at else START)
            except queue.Empty:
                event, error = None, f"it had not ended after {limit:g} s, and couldn't be asked where it was"
            else:
                error = "it ended Python itself"
            if isinstance(event, Begun):
                at = event
            elif isinstance(event, Did):
                done[first + event.job][0].append(event)
                if event.lost:
                    return first + event.job + 1
            elif isinstance(event, Shape):
                done[first + event.job] = (done[first + event.job][0], event)
            elif isinstance(event, Ended):
                return len(jobs)
            elif at is None:
                raise GuideError(f"the process for the guide's code can't be started: {_last_line(said)}")
            else:
                program.kill()
                status = program.wait()
                steps = done[first + at.job][0]
                del steps[at.step :]
                steps.append(Did(at.job, at.step, error=f"{error} (exit status {status})", lost=True))
                return first + at.job + 1


@contextlib.contextmanager
def _program(
    work: bytes, said: IO[bytes], hash_seed: int
) -> Iterator[tuple[subprocess.Popen[bytes], queue.Queue[Event | None]]]:
    """The process, and what it tells: None at its end."""
    program = subprocess.Popen(
        [sys.executable, "-P", "-m", "headwise.study.running"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),  # it finds what we find
            "PYTHONHASHSEED": str(hash_seed),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        },
    )
    events: queue.Queue[Event | None] = queue.Queue()
    stdin, stdout = cast(IO[bytes], program.stdin), cast(IO[bytes], program.stdout)  # both are pipes
    listener = threading.Thread(target=_listen, args=(stdout, events), daemon=True)
    listener.start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended already, and `said` has why
            stdin.write(work)
            stdin.close()
        yield program, events
    finally:
        program.kill()
        program.wait()
        listener.join()
        stdout.close()
        with contextlib.suppress(BrokenPipeError):
            stdin.close()


def _listen(out: IO[bytes], events: queue.Queue[Event | None]) -> None:
    for line in out:
        events.put(msgspec.json.decode(line, type=Event))
    events.put(None)


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
