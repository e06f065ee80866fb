"""The tables of a file of progress."""

from __future__ import annotations

APPLICATION = 0x68775367  # "hwSg": tells that a database is one of ours
VERSION = 1

LOGS = ("reviews", "undos", "answers", "marks")
"""Tables that only grow: the database itself refuses to change or remove a row."""

TABLES = """
CREATE TABLE reviews (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,         -- made by the page: sending a review twice adds it once
    guide TEXT NOT NULL,
    card TEXT NOT NULL,
    rev INTEGER NOT NULL,
    rating INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 4),
    at INTEGER NOT NULL,             -- what the scheduler counts from; later than the review before it
    clock INTEGER NOT NULL,          -- what the clock said
    duration INTEGER                 -- milliseconds, if known
);
CREATE INDEX reviews_of_card ON reviews (guide, card, at, id);
CREATE INDEX reviews_by_time ON reviews (guide, at, id);
CREATE TABLE undos (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    undoes TEXT NOT NULL UNIQUE,     -- id of a review
    at INTEGER NOT NULL
);
CREATE TABLE answers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    guide TEXT NOT NULL,
    question TEXT NOT NULL,
    rev INTEGER NOT NULL,
    version TEXT NOT NULL,           -- of the guide: "current", or the number of a frozen one
    given TEXT NOT NULL,             -- JSON
    correct INTEGER NOT NULL CHECK (correct IN (0, 1)),
    score REAL NOT NULL,
    seed INTEGER NOT NULL,           -- of the order in which the options stood
    at INTEGER NOT NULL
);
CREATE INDEX answers_of_question ON answers (guide, question, rev, at);
CREATE TABLE marks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    guide TEXT NOT NULL,
    activity TEXT NOT NULL,
    done INTEGER NOT NULL CHECK (done IN (0, 1)),
    at INTEGER NOT NULL
);
-- What counts from another instant than it was written with: it was imported from under a later clock
CREATE TABLE IF NOT EXISTS arrivals (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,             -- when it was imported
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- What the log amounts to: computed from it, and computed again whenever in doubt
CREATE TABLE states (
    guide TEXT NOT NULL,
    card TEXT NOT NULL,
    state TEXT NOT NULL,
    step INTEGER,
    stability REAL NOT NULL,
    difficulty REAL NOT NULL,
    due INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    reviews INTEGER NOT NULL,
    lapses INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    head TEXT NOT NULL,
    PRIMARY KEY (guide, card)
) WITHOUT ROWID;
"""


def added() -> list[str]:
    """What files that were made earlier may lack, and older versions pass by."""
    return [part.strip() for part in TABLES.split(";\n") if "IF NOT EXISTS" in part]


def guards() -> list[str]:
    """What makes a log of a table: the database refuses to change or remove a row."""
    return [
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is a log: rows are added, never changed'); END"
        for table in LOGS
        for verb in ("UPDATE", "DELETE")
    ]


def erasing() -> list[str]:
    """What empties the logs and what follows from them, and guards them again; run in one transaction."""
    made = [f"DROP TRIGGER {table}_no_{verb}" for table in LOGS for verb in ("update", "delete")]
    made += [f"DELETE FROM {table}" for table in (*LOGS, "arrivals", "states", "sqlite_sequence")]
    return made + guards()


def statements() -> list[str]:
    """Everything that makes an empty file one of progress; run in one transaction."""
    made = [part.strip() for part in TABLES.split(";\n") if part.strip()]
    made += guards()
    made += [f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"]
    return made
