"""The file of progress: SQLite, safe against a kill, a full disk and a second program at the same file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwise.study.progress import days, schema
from headwise.study.progress.backups import back_up, backups, broken
from headwise.study.progress.errors import Damaged, NotSaved, ProgressError
from headwise.study.progress.schedule import LAWS, CardState, Review, fold

WAIT = 5.0
"""Seconds to wait for another program that is writing."""

_FULL = "The disk is full, so nothing was saved. Free some space, then try again."
_CODES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: "The file of progress can't be written (the disk may be full), so nothing was "
    "saved. Look at the disk, then try again.",
    sqlite3.SQLITE_READONLY: "The file of progress may not be written, so nothing was saved. Give yourself "
    "the right to write it, then try again.",
    sqlite3.SQLITE_PERM: "The file of progress may not be opened: give yourself the right to.",
    sqlite3.SQLITE_CANTOPEN: "The file of progress can't be opened: look at its folder and your rights.",
    sqlite3.SQLITE_BUSY: f"Another program has held the file of progress for {WAIT:g} seconds, so nothing "
    "was saved. Try again.",
    sqlite3.SQLITE_LOCKED: "Another program holds the file of progress, so nothing was saved. Try again.",
}


class Store:
    """A learner's progress in one file.

    One connection, used by one thread at a time; any number of stores, in any number of programs, may be open
    on the same file.

    Args:
        file: made if it isn't there, with its folder.

    Raises:
        Damaged: the file is no database of ours. It is left as it is.
        NotSaved: the file can't be opened or made.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        with self._lock, self.told():
            self._open()

    def close(self) -> None:
        """Close the file; the store can't be used any more."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One look at the file: all queries within see the same state. A look within a look, or within a
        change, is part of that."""
        with self._lock, self.told():
            if self._connection is not None and self._connection.in_transaction:
                yield self._connection
                return
            connection = self._current()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A change that happens as a whole or not at all, and is on the disk when this ends.

        Before the first of a day, the file is copied, see `backups`.

        Raises:
            NotSaved, Damaged: nothing was changed.
        """
        with self._lock, self.told():
            connection = self._current()
            back_up(connection, self.file, days.now())
            connection.execute("BEGIN IMMEDIATE")
            try:
                # Another version of headwise may have opened the file since, and folded by laws of its own.
                self._check_ours(connection)
                _take_up(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def flush(self) -> None:
        """Bring what the write-ahead log holds into the file, and empty it, unless somebody is reading it."""
        with self._lock, self.told():
            self._current().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors of the database in words for the learner."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except OSError as error:
            raise NotSaved(f"{self.file}: {error.strerror or error}; nothing was saved.") from error

    def _explained(self, error: sqlite3.Error) -> ProgressError:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if broken(error):
            return Damaged(
                f"{self.file} is damaged or no file of progress ({error}). It was left as it is: "
                f"{self._way_out()}"
            )
        if code in _CODES:
            return NotSaved(f"{_CODES[code]} The file: {self.file}")
        return ProgressError(f"{self.file}: {error}; nothing was saved.")

    def _way_out(self) -> str:
        copies = backups(self.file)
        if not copies:
            return "move it away and start again; if you have exported your progress, import that file."
        return (
            "move it away, with the files beside it whose names begin with its own, and put the latest copy "
            f"in its place under its name: {copies[0]}"
        )

    def _current(self) -> sqlite3.Connection:
        """The connection; a new one where the file was replaced under it, as restoring a backup does."""
        if self._connection is None:
            raise ProgressError("this store is closed")
        try:
            found = self.file.stat()
        except FileNotFoundError:
            raise NotSaved(
                f"{self.file} was moved or deleted while it was in use, so nothing was saved. Put it back, "
                "or start the program again to begin a new one."
            ) from None
        if (found.st_dev, found.st_ino) != self._identity:
            with contextlib.suppress(sqlite3.Error):
                # What the old file's write-ahead log still holds goes into the old file, wherever that is
                # now: left behind, it would be taken for the new file's.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            self._open()
        return self._connection

    def _open(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_private()
        connection = sqlite3.connect(
            self.file, timeout=WAIT, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        found = self.file.stat()
        self._identity = (found.st_dev, found.st_ino)

    def _make_private(self) -> None:
        """Make the file one that other accounts can't read; SQLite gives its own files beside it the same
        mode. Where that fails, SQLite tells why."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.file, os.O_RDONLY | os.O_CREAT, 0o600))
            mode = stat.S_IMODE(self.file.stat().st_mode)
            if mode & 0o077:  # made by an earlier headwise
                self.file.chmod(mode & 0o700)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")  # one look: another program may be making the file
        try:
            self._check_ours(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")  # a review that was confirmed survives a power cut
        # on macOS too, where a plain fsync leaves it to the drive
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        if _ready(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_ours(connection)  # another program may just have made it
            if _number(connection, "PRAGMA user_version") == 0:
                for statement in schema.statements():
                    connection.execute(statement)
            _take_up(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _check_ours(self, connection: sqlite3.Connection) -> None:
        application = _number(connection, "PRAGMA application_id")
        version = _number(connection, "PRAGMA user_version")
        tables = _number(connection, "SELECT count(*) FROM sqlite_master")
        if application not in (0, schema.APPLICATION) or (application == 0 and tables):
            raise Damaged(f"{self.file} is a database of another program: it was left as it is.")
        if version > schema.VERSION:
            raise Damaged(
                f"{self.file} was written by a newer headwise (format {version}, this one knows "
                f"{schema.VERSION}): it was left as it is. Install the newer one."
            )


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on. SQLite doesn't wait here for others that do the same with a new file."""
    until = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _ready(connection: sqlite3.Connection) -> bool:
    """Are the tables there, and the states those of this version's laws?"""
    if _number(connection, "PRAGMA user_version") == 0:
        return False
    laws = connection.execute("SELECT value FROM meta WHERE name = 'laws'").fetchone()
    return laws is not None and laws[0] == LAWS


def _take_up(connection: sqlite3.Connection) -> None:
    """Within a change: add what an earlier headwise didn't know of, and compute the states by this one's
    laws, if they are others'."""
    if not _ready(connection):
        for statement in schema.added():
            connection.execute(statement)
        rebuild(connection)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('laws', ?)", (LAWS,))


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


_FIELDS = "state, step, stability, difficulty, due, last, first, reviews, lapses, rev, head"


def state_of(connection: sqlite3.Connection, guide: str, card: str) -> CardState | None:
    """The state of a card; None if it was never reviewed."""
    row = connection.execute(
        f"SELECT {_FIELDS} FROM states WHERE guide = ? AND card = ?", (guide, card)
    ).fetchone()
    return CardState(*row) if row else None


def states_of(connection: sqlite3.Connection, guide: str) -> dict[str, CardState]:
    """The states of all cards of a guide that were ever reviewed."""
    rows = connection.execute(f"SELECT card, {_FIELDS} FROM states WHERE guide = ?", (guide,))
    return {row[0]: CardState(*row[1:]) for row in rows}


def counted(table: str) -> str:
    """The instant that an entry of a log counts from, in SQL: the one that it was written with, or that of
    its import from under a later clock."""
    return (
        f"coalesce((SELECT arrivals.at FROM arrivals WHERE arrivals.kind = '{table}' "
        f"AND arrivals.id = {table}.id), {table}.at)"
    )


def keep(connection: sqlite3.Connection, guide: str, card: str, state: CardState | None) -> None:
    """Write down the state of a card; None removes it."""
    if state is None:
        connection.execute("DELETE FROM states WHERE guide = ? AND card = ?", (guide, card))
        return
    values = (
        guide,
        card,
        state.state,
        state.step,
        state.stability,
        state.difficulty,
        state.due,
        state.last,
        state.first,
        state.reviews,
        state.lapses,
        state.rev,
        state.head,
    )
    connection.execute(f"INSERT OR REPLACE INTO states VALUES ({', '.join('?' * len(values))})", values)


def refold(connection: sqlite3.Connection, guide: str, card: str) -> CardState | None:
    """Compute the state of a card from its reviews, and write it down."""
    rows = connection.execute(
        f"SELECT id, {counted('reviews')} AS counts, rating, rev FROM reviews WHERE guide = ? AND card = ? "
        "AND id NOT IN (SELECT undoes FROM undos) ORDER BY counts, at, id",
        (guide, card),
    )
    state = fold(Review(*row) for row in rows)
    keep(connection, guide, card, state)
    return state


def rebuild(connection: sqlite3.Connection) -> int:
    """Compute the states of all cards from the log; their number."""
    connection.execute("DELETE FROM states")
    pairs = connection.execute("SELECT DISTINCT guide, card FROM reviews").fetchall()
    for guide, card in pairs:
        refold(connection, guide, card)
    return len(pairs)
