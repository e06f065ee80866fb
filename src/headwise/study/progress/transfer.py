"""All progress as one JSON file: written, and read back into the same or another place.

The static export writes and reads the same file in the browser (static/transfer.js). An import adds what is
missing, by the ids of the entries, so importing twice changes nothing and the progress of two machines can be
joined. A file with any fault in it changes nothing at all.

A clock that runs ahead is no fault of a file: entries of later than now are kept as they were written, and
count from the instant of the import (the table `arrivals`), so that none of them plans a card into a time
that nobody will see. Importing the file again when the clock is right, or the time has come, sets them right.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from headwise.study.progress import checks, days
from headwise.study.progress.errors import BadImport, Refused
from headwise.study.progress.reviews import NOTICEABLE
from headwise.study.progress.settings import check_settings, read_settings, write_settings
from headwise.study.progress.store import Store, refold

FORMAT = "headwise-study-progress"
VERSION = 1
Row = tuple[Any, ...]

LATEST_COUNTS = ("reviews", "answers", "marks")
"""Kinds of which the latest entry outdoes the others, so that one of later than now would do so for long."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "reviews": ("id", "guide", "card", "rev", "rating", "at", "clock", "duration"),
    "undos": ("id", "undoes", "at"),
    "answers": ("id", "guide", "question", "rev", "version", "given", "correct", "score", "seed", "at"),
    "marks": ("id", "guide", "activity", "done", "at"),
}


def export_progress(store: Store, *, clock: int, profile: str = "default") -> dict[str, Any]:
    """All progress, as JSON has it."""
    with store.reading() as connection:
        made: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "exported": days.written(clock),
            "profile": profile,
            "settings": read_settings(connection).to_dict(),
        }
        for table, columns in COLUMNS.items():
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY at, id")
            made[table] = [_entry(columns, row) for row in rows]
    return made


def _entry(columns: tuple[str, ...], row: Row) -> dict[str, Any]:
    entry = dict(zip(columns, row, strict=True))
    for name in ("at", "clock"):
        if name in entry:
            entry[name] = days.written(entry[name])
    for name in ("correct", "done"):
        if name in entry:
            entry[name] = bool(entry[name])
    if "given" in entry:
        entry["given"] = json.loads(entry["given"])
    return entry


def import_text(store: Store, text: str | bytes, *, clock: int) -> dict[str, int]:
    """Read an exported file into the store. See `import_progress`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadImport(f"The file is no whole JSON file ({error}): nothing was changed.") from None
    return import_progress(store, data, clock=clock)


def import_progress(store: Store, data: object, *, clock: int) -> dict[str, int]:
    """Add everything of an export that is not there yet.

    Returns:
        How many entries were added, by kind ("reviews", "undos", "answers", "marks"); "known": how many were
        there already; "ahead": how many count from now, since they were written under a later clock.

    Raises:
        BadImport: there is a fault in it; the message names the entry. Nothing was changed.
        NotSaved, Damaged: see `Store.writing`; nothing was changed.
    """
    with store.writing() as connection:
        tables, settings = read_export(data, connection)
        counts = {"known": 0, "ahead": 0}
        changed: set[str] = set()
        for table, columns in COLUMNS.items():
            counts[table] = 0
            for place, row in enumerate(tables[table]):
                if row is not None and _add(connection, table, columns, row, place):
                    counts[table] += 1
                    changed.update(_reviews_of(table, row))
                else:
                    counts["known"] += 1
        for table in LATEST_COUNTS:
            ids = [entry["id"] for entry in data[table]]  # type: ignore[index]  # checked by read_export
            fresh = {row[0] for row in tables[table] if row is not None}
            ahead, moved = _arrive(connection, table, ids, fresh, clock)
            counts["ahead"] += ahead
            if table == "reviews":
                changed |= moved
        missing = connection.execute(
            "SELECT undoes FROM undos WHERE undoes NOT IN (SELECT id FROM reviews) LIMIT 1"
        ).fetchone()
        if missing is not None:
            raise _fault("undos", f"one undoes the review {missing[0]}, which isn't there")
        write_settings(connection, settings, clock)
        _refold(connection, changed)
    return counts


def _arrive(
    connection: sqlite3.Connection, table: str, ids: list[str], fresh: set[str], clock: int
) -> tuple[int, set[str]]:
    """Let entries of later than now count from now, and those that counted from an earlier import from a
    later instant, or from when they were written.

    Returns:
        How many of them lie noticeably after now, and the ids of those that count from another instant than
        before. Undone reviews count from nothing.
    """
    ahead, moved = 0, set()
    for id in ids:
        at, before = connection.execute(
            f"SELECT {table}.at, arrivals.at FROM {table} LEFT JOIN arrivals "
            f"ON arrivals.kind = ? AND arrivals.id = {table}.id WHERE {table}.id = ?",
            (table, id),
        ).fetchone()
        if before is None and (id not in fresh or at <= clock):
            continue  # as it was written; one that was made here under another clock stays so, too
        if (
            table == "reviews"
            and connection.execute("SELECT 1 FROM undos WHERE undoes = ?", (id,)).fetchone()
        ):
            continue
        ahead += at > clock + NOTICEABLE
        if before is not None and before >= min(at, clock):
            continue
        moved.add(id)
        connection.execute("DELETE FROM arrivals WHERE kind = ? AND id = ?", (table, id))
        if at > clock:
            connection.execute("INSERT INTO arrivals VALUES (?, ?, ?)", (table, id, clock))
    return ahead, moved


def _reviews_of(table: str, row: Row) -> tuple[str, ...]:
    """The id of the review that an entry adds or takes away."""
    return {"reviews": row[:1], "undos": row[1:2]}.get(table, ())


def _refold(connection: sqlite3.Connection, reviews: set[str]) -> None:
    """Compute the states of the cards of these reviews, and of no others."""
    found = [
        connection.execute("SELECT guide, card FROM reviews WHERE id = ?", (id,)).fetchone() for id in reviews
    ]
    for guide, card in sorted(set(found)):
        refold(connection, guide, card)


def _add(connection: sqlite3.Connection, table: str, columns: tuple[str, ...], row: Row, place: int) -> bool:
    if connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", row[:1]).fetchone():
        raise _fault(table, f"the id {row[0]} belongs to another entry here", place)
    if table == "undos":
        other = connection.execute("SELECT id FROM undos WHERE undoes = ?", (row[1],)).fetchone()
        if other is not None:  # undone on both machines: once is enough
            return False
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)
    return True


def read_export(
    data: object, connection: sqlite3.Connection
) -> tuple[dict[str, list[Row | None]], dict[str, Any]]:
    """Check a whole export: the rows of each table, None for an entry that is there already as it stands in
    the file (whatever it is, it was good enough to be kept), and the settings.

    Raises:
        BadImport: there is a fault in it.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadImport(f'The file is no export of progress ("format": "{FORMAT}"): nothing was changed.')
    if data.get("version") != VERSION:
        raise BadImport(
            f"The file has the format's version {data.get('version')!r}, and this headwise reads {VERSION}: "
            "nothing was changed. Install the newer one."
        )
    unknown = set(data) - {"format", "version", "exported", "profile", "settings", *COLUMNS}
    if unknown:
        raise BadImport(f"The file has a part {min(unknown)!r} that is unknown: nothing was changed.")
    tables: dict[str, list[Row | None]] = {}
    for table in COLUMNS:
        entries = data.get(table)
        if not isinstance(entries, list):
            raise BadImport(f"The file has no list {table!r}: it is not whole. Nothing was changed.")
        tables[table] = [
            None if _known(connection, table, entry) else _row(table, entry, place)
            for place, entry in enumerate(entries)
        ]
        if len({entry["id"] for entry in entries}) != len(entries):
            raise BadImport(f"Two of the {table} have the same id: nothing was changed.")
    if not isinstance(data.get("settings"), dict):
        raise BadImport("The file has no settings: it is not whole. Nothing was changed.")
    try:
        return tables, check_settings(data["settings"])
    except Refused as error:
        raise BadImport(f"The settings: {error}. Nothing was changed.") from None


def _known(connection: sqlite3.Connection, table: str, entry: object) -> bool:
    """Is the entry there, with the same values? Compared as they are exported: an instant that no file can
    write (before 1970, after 9999) is written as the nearest one."""
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return False
    columns = COLUMNS[table]
    row = connection.execute(
        f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?",
        (entry["id"].encode(errors="replace").decode(),),
    ).fetchone()
    return row is not None and _entry(columns, row) == entry


def _row(table: str, entry: object, place: int) -> Row:
    columns = COLUMNS[table]
    if not isinstance(entry, dict) or set(entry) != set(columns):
        raise _fault(table, f"it has to have {', '.join(columns)}", place)
    try:
        return tuple(_READ[name](entry[name]) for name in columns)
    except (Refused, ValueError, OverflowError) as error:
        raise _fault(table, str(error), place) from None


def _fault(table: str, what: str, place: int | None = None) -> BadImport:
    number = "" if place is None else f", number {place + 1}"
    return BadImport(f"The file's {table}{number}: {what}. Nothing was changed.")


def _score(value: object) -> float:
    if type(value) not in (int, float) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Refused(f"score {value!r}: a number from 0 to 1 is wanted")
    return float(value)


def _duration(value: object) -> int | None:
    return None if value is None else checks.check_whole(value, "duration", 0, checks.LONGEST_DURATION)


_READ: Mapping[str, Callable[[object], Any]] = {
    "id": checks.check_id,
    "undoes": checks.check_id,
    "guide": lambda value: checks.check_slug(value, "guide"),
    "card": lambda value: checks.check_slug(value, "card"),
    "question": lambda value: checks.check_slug(value, "question"),
    "activity": lambda value: checks.check_slug(value, "activity"),
    "rev": lambda value: checks.check_whole(value, "rev", 1, 1_000_000),
    "rating": lambda value: checks.check_whole(value, "rating", 1, 4),
    "seed": lambda value: checks.check_whole(value, "seed", 0, 2**32 - 1),
    "duration": _duration,
    "version": checks.check_version,
    "given": lambda value: json.dumps(checks.check_given(value)),
    "correct": lambda value: int(checks.check_flag(value, "correct")),
    "done": lambda value: int(checks.check_flag(value, "done")),
    "score": _score,
    "at": days.read,
    "clock": days.read,
}
