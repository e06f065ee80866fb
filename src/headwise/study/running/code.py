"""The code of lessons and questions: what it prints, and the shapes it gives."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.study.content import Guide
from headwise.study.content.fences import fences
from headwise.study.content.lesson import Block, Lesson
from headwise.study.content.quiz import Question
from headwise.study.errors import GuideError
from headwise.study.running.jobs import Did, Job, Shape, Step
from headwise.study.running.process import LIMIT, run_jobs

Done = tuple[list[Did], Shape | None]
KEPT = 1000
"""Results that are kept while this Python runs: the same code gives the same again, so a guide that is built
again runs only what was changed. What failed is tried again."""

_kept: dict[tuple[Job, int], Done] = {}
_lock = threading.Lock()


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


def prepare(guide: Guide, *, hash_seed: int = 0, limit: float = LIMIT) -> None:
    """Run all code of a guide's lessons and questions in one process, for `run_lessons` and `shape_of`."""
    jobs = [
        _job_of_lesson(activity) for activity in guide.activities.values() if isinstance(activity, Lesson)
    ]
    jobs += [_job_of_question(question) for question in guide.questions().values() if question.ask]
    _results(jobs, hash_seed, limit)


def run_lesson(
    lesson: Lesson, folder: Path | str, *, hash_seed: int = 0, limit: float = LIMIT
) -> dict[str, Ran]:
    """Run the code of a lesson: see `run_lessons`."""
    return run_lessons([lesson], folder, hash_seed=hash_seed, limit=limit)[lesson.id]


def run_lessons(
    lessons: Iterable[Lesson], folder: Path | str, *, hash_seed: int = 0, limit: float = LIMIT
) -> dict[str, dict[str, Ran]]:
    """Run the code of lessons: what their `code` blocks and solutions print, by the lesson's id and the
    block's.

    The blocks of a lesson run one after another in reading order and share their names, so that a later
    block may go on where an earlier one stopped; `hw` and `torch` are there from the start. Each begins with
    the same seed. All this happens in another process (one for all lessons). A block that takes too long, or
    ends Python, has an error, and those after it in its lesson are not there.

    Args:
        folder: of the guide, for errors.
        hash_seed: decides in which order Python goes through sets of texts.
        limit: seconds for each block.

    Raises:
        GuideError: Python can't be started.
    """
    wanted = list(lessons)
    found = _results([_job_of_lesson(lesson) for lesson in wanted], hash_seed, limit)
    return {
        lesson.id: {
            block.id: _ran(block, did, str(Path(folder) / lesson.file))
            for block, did in zip(_run_blocks(lesson), steps, strict=False)
        }
        for lesson, (steps, _) in zip(wanted, found, strict=True)
    }


def shape_of(question: Question, file: str, *, limit: float = LIMIT) -> list[int]:
    """The right answer of a question about a shape: that of what its `ask` gives after its `code` has run.

    Args:
        file: that the question stands in, for errors.

    Raises:
        GuideError: the code fails, or what it asks for is no shape.
    """
    (((*_, did), shape),) = _results([_job_of_question(question)], 0, limit)
    if did.error:
        raise GuideError(f"{question.id}: the code fails: {did.error}", file, question.line)
    if shape is None or shape.shape is None:
        gives = shape.gives if shape else "nothing"
        raise GuideError(
            f"{question.id}: ask = {question.ask!r} gives {gives}: it must give a shape, like x.shape",
            file,
            question.line,
        )
    return list(shape.shape)


def _results(jobs: Sequence[Job], hash_seed: int, limit: float) -> list[Done]:
    """What became of jobs; those that are known are not run again."""
    found: dict[Job, Done] = {}
    with _lock:
        for job in jobs:
            if not job.ask and not any(step.pieces for step in job.steps):  # nothing to run
                found[job] = ([Did(0, place) for place in range(len(job.steps))], None)
            elif (job, hash_seed) in _kept:
                found[job] = _kept[job, hash_seed]
    new = [job for job in dict.fromkeys(jobs) if job not in found]
    if new:
        found.update(zip(new, run_jobs(new, hash_seed=hash_seed, limit=limit), strict=True))
        with _lock:
            while len(_kept) > KEPT:
                del _kept[next(iter(_kept))]
            _kept.update(
                {(job, hash_seed): found[job] for job in new if not any(did.error for did in found[job][0])}
            )
    return [found[job] for job in jobs]


def _run_blocks(lesson: Lesson) -> list[Block]:
    return [block for block in lesson.walk() if block.kind in ("code", "solution")]


def _job_of_lesson(lesson: Lesson) -> Job:
    steps = []
    for block in _run_blocks(lesson):
        pieces = fences(block.body, block.body_line)
        steps.append(Step(tuple((one.code, one.line) for one in pieces if one.language == "python")))
    return Job(lesson.file, tuple(steps))


def _job_of_question(question: Question) -> Job:
    return Job(f"<{question.id}>", (Step(((question.code, 1),)),), question.ask)


def _ran(block: Block, did: Did, file: str) -> Ran:
    if not did.error:
        return Ran(did.output, did.seconds)
    error = GuideError(f"the code of #{block.id} fails: {did.error}", file, did.line or block.line)
    return Ran(did.output, did.seconds, error)
