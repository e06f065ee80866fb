"""Erasing a profile's progress: the one thing that takes entries out of the log."""

from __future__ import annotations

import sqlite3

from headwise.study.progress import schema
from headwise.study.progress.backups import forget_backups
from headwise.study.progress.store import Store

KINDS = ("reviews", "answers", "marks")
"""What a learner is told of; undos go with their reviews."""


def kept(store: Store) -> dict[str, int]:
    """How many entries of each of `KINDS` there are, in all guides: what erasing would lose."""
    with store.reading() as connection:
        return _counted(connection)


def erase_progress(store: Store) -> dict[str, int]:
    """Erase all reviews, undos, answers and marks, of all guides; how many there were, by `KINDS`. Settings
    stay, and so do the files of other profiles. What was erased is overwritten on the disk, and copies of the
    file are deleted.

    Other programs may have the file open: a rating of what they still show is refused as a conflict.

    Raises:
        NotSaved, Damaged: see `Store.writing`; nothing was erased.
    """
    with store.writing() as connection:
        found = _counted(connection)
        connection.execute("PRAGMA secure_delete = ON")
        for statement in schema.erasing():
            connection.execute(statement)
    store.flush()
    with store.told():
        forget_backups(store.file)
    return found


def _counted(connection: sqlite3.Connection) -> dict[str, int]:
    return {kind: int(connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]) for kind in KINDS}
