"""Answers to questions and marks on activities: added to the log, read as the latest of each."""

from __future__ import annotations

import json
from typing import Any

from headwise.study.progress import checks
from headwise.study.progress.errors import Refused
from headwise.study.progress.store import Store, counted


def add_answer(
    store: Store,
    *,
    id: str,
    guide: str,
    question: str,
    rev: int,
    version: str,
    given: str | list[str],
    correct: bool,
    score: float,
    seed: int,
    clock: int,
) -> bool:
    """Add a graded answer to the log; False where the same was there already.

    Raises:
        Refused: a value makes no sense, or the id belongs to another answer.
    """
    checks.check_id(id)
    checks.check_slug(guide, "guide")
    checks.check_slug(question, "question")
    checks.check_whole(rev, "rev", 1, 1_000_000)
    checks.check_version(version)
    checks.check_whole(seed, "seed", 0, 2**32 - 1)
    written = json.dumps(checks.check_given(given))
    with store.writing() as connection:
        known = connection.execute(
            "SELECT guide, question, rev, given FROM answers WHERE id = ?", (id,)
        ).fetchone()
        if known is not None:
            if known != (guide, question, rev, written):
                raise Refused(f"id {id}: it belongs to another answer; make a new one for each")
            return False
        connection.execute(
            "INSERT INTO answers (id, guide, question, rev, version, given, correct, score, seed, at) "
            "VALUES (?,?,?,?,?,?,?,?,?,?)",
            (id, guide, question, rev, version, written, int(correct), float(score), seed, clock),
        )
        return True


def latest_answers(store: Store, guide: str) -> dict[str, dict[str, Any]]:
    """The latest answer to each question, by the question's id and then by its revision (as text), each with
    the number of attempts."""
    found: dict[str, dict[str, Any]] = {}
    with store.reading() as connection:
        rows = connection.execute(
            f"SELECT id, question, rev, given, correct, score, seed, {counted('answers')} AS counts "
            "FROM answers WHERE guide = ? ORDER BY counts, seq",
            (guide,),
        ).fetchall()
    for id, question, rev, given, correct, score, seed, at in rows:
        revisions = found.setdefault(question, {})
        before = revisions.get(str(rev))
        revisions[str(rev)] = {
            "id": id,
            "given": json.loads(given),
            "correct": bool(correct),
            "score": score,
            "seed": seed,
            "at": at,
            "attempts": before["attempts"] + 1 if before else 1,
        }
    return found


def add_mark(store: Store, *, id: str, guide: str, activity: str, done: bool, clock: int) -> bool:
    """Mark an activity as done, or as not done; False where the same mark was there already.

    Raises:
        Refused: a value makes no sense, or the id belongs to another mark.
    """
    checks.check_id(id)
    checks.check_slug(guide, "guide")
    checks.check_slug(activity, "activity")
    checks.check_flag(done, "done")
    with store.writing() as connection:
        known = connection.execute("SELECT guide, activity, done FROM marks WHERE id = ?", (id,)).fetchone()
        if known is not None:
            if known != (guide, activity, int(done)):
                raise Refused(f"id {id}: it belongs to another mark; make a new one for each")
            return False
        connection.execute(
            "INSERT INTO marks (id, guide, activity, done, at) VALUES (?,?,?,?,?)",
            (id, guide, activity, int(done), clock),
        )
        return True


def latest_marks(store: Store, guide: str) -> dict[str, bool]:
    """Which activities are marked as done."""
    with store.reading() as connection:
        rows = connection.execute(
            f"SELECT activity, done FROM marks WHERE guide = ? ORDER BY {counted('marks')}, seq", (guide,)
        ).fetchall()
    return {activity: bool(done) for activity, done in rows}
