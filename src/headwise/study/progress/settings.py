"""What a learner may choose."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwise.study.progress import checks, days
from headwise.study.progress.errors import Refused
from headwise.study.progress.store import Store


@dataclass(frozen=True)
class Settings:
    """A learner's choices.

    Attributes:
        day_start: when their day begins, by the clock on the wall.
        new_per_day: how many new cards a day brings.
        shortcuts: whether single keys do something on pages of cards.
    """

    day_start: str = days.DAY_START
    new_per_day: int = 10
    shortcuts: bool = True

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def check_settings(values: Mapping[str, object]) -> dict[str, Any]:
    """Settings to be changed, by their names.

    Raises:
        Refused: a name or a value is none.
    """
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name == "day_start":
            if not isinstance(value, str):
                raise Refused(f"day_start {value!r}: a text such as 04:00 is wanted")
            days.minutes(value)
            checked[name] = value
        elif name == "new_per_day":
            checked[name] = checks.check_whole(value, name, 0, 9999)
        elif name == "shortcuts":
            checked[name] = checks.check_flag(value, name)
        else:
            raise Refused(f"there is no setting {name!r}: they are {', '.join(asdict(Settings()))}")
    return checked


def read_settings(connection: sqlite3.Connection) -> Settings:
    """The settings in a file of progress."""
    known = asdict(Settings())
    for name, value in connection.execute("SELECT name, value FROM settings"):
        if name in known:
            known[name] = json.loads(value)
    return Settings(**known)


def change_settings(store: Store, values: Mapping[str, object], *, clock: int) -> Settings:
    """Change some settings; all of them now.

    Raises:
        Refused: a name or a value is none; nothing was changed.
    """
    checked = check_settings(values)
    with store.writing() as connection:
        write_settings(connection, checked, clock)
        return read_settings(connection)


def write_settings(connection: sqlite3.Connection, checked: Mapping[str, Any], clock: int) -> None:
    """Write down settings that were checked."""
    for name, value in checked.items():
        connection.execute(
            "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", (name, json.dumps(value), clock)
        )
