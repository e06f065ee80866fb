"""Copies of a file of progress, made once a day beside it: what is left where the disk damages the file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from headwise.study.progress import days, schema

KEPT = 3
"""How many copies are kept of a file, the one of this day among them."""


def backups(file: Path) -> list[Path]:
    """The copies of a file, the latest first."""
    found = _folder(file).glob(f"{file.stem}.????-??-??{file.suffix}")
    return sorted(found, key=lambda copy: copy.name, reverse=True)


def back_up(connection: sqlite3.Connection, file: Path, clock: int) -> Path | None:
    """Copy the file, as it was before this day's first change, unless there is a copy of this day, or nothing
    in the log. Where the copy can't be written (the disk is full), there is none.

    Raises:
        sqlite3.Error: the file is damaged: what is copied was read as a whole.
    """
    copy = _folder(file) / f"{file.stem}.{days.local_time(max(clock, 0)):%Y-%m-%d}{file.suffix}"
    if copy.exists() or not any(
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in schema.LOGS
    ):
        return None
    part = copy.with_name(f"{copy.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # nobody else's to read
        connection.execute("VACUUM INTO ?", (str(part),))
        part.replace(copy)
    except OSError:
        return None
    except sqlite3.Error as error:
        if broken(error):
            raise
        return None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    for old in [one for one in backups(file) if one != copy][KEPT - 1 :]:
        with contextlib.suppress(OSError):
            old.unlink()
    return copy


def forget_backups(file: Path) -> None:
    """Delete all copies of a file: its progress was erased, and nothing may bring it back."""
    for copy in backups(file):
        copy.unlink(missing_ok=True)


def broken(error: sqlite3.Error) -> bool:
    """Does an error say that the file is damaged, or no database?"""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _folder(file: Path) -> Path:
    return file.parent / "backups"
