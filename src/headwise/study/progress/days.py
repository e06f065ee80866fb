"""The learner's day: it begins at 4:00 by the clock on the wall unless they choose otherwise.

Only the queue knows of days; the scheduler computes with instants. An instant is a whole number of
milliseconds since 1970-01-01T00:00Z. static/days.js does the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo

from headwise.study.progress.errors import Refused

DAY_START = "04:00"
LATEST = 253_401_955_200_000
"""9999-12-28T00:00Z, the last instant that is planned for or shown: dates end with the year 9999, in some
zones a day earlier, and nothing may fail there. The same stands in static/days.js."""
_END = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
Clock = Callable[[], int]
"""Gives the present instant."""


def now() -> int:
    """The present instant, by this machine's clock."""
    return time.time_ns() // 1_000_000


def minutes(start: str) -> int:
    """Hours and minutes as minutes after midnight.

    Raises:
        Refused: it is no time of day.
    """
    found = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", start)
    if found is None:
        raise Refused(f"day start {start!r}: write hours and minutes, from 00:00 to 23:59, such as 04:00")
    return int(found[1]) * 60 + int(found[2])


def day_of(at: int, start: str = DAY_START, zone: tzinfo | None = None) -> date:
    """The day that an instant belongs to: with a start of 4:00, 3:59 is still yesterday.

    Instants are compared, not what the clock shows: a start that it shows twice is passed the first time.

    Args:
        zone: None for that of this machine.
    """
    day = local_time(at, zone).date() + timedelta(days=1)
    while starts(day, start, zone) > at:
        day -= timedelta(days=1)
    return day


def starts(day: date, start: str = DAY_START, zone: tzinfo | None = None) -> int:
    """The instant at which a day begins. Where the clock skips that time (summer time begins), the instant
    that it would have had without the skip; where the time comes twice, the first."""
    begin = minutes(start)
    wall = datetime(day.year, day.month, day.day, begin // 60, begin % 60, tzinfo=zone)
    return int(wall.timestamp() * 1000)


def end_of_day(at: int, start: str = DAY_START, zone: tzinfo | None = None) -> int:
    """The instant at which the day of `at` ends, and the next one begins."""
    return starts(day_of(at, start, zone) + timedelta(days=1), start, zone)


def local_time(at: int, zone: tzinfo | None = None) -> datetime:
    """An instant by the clock on the wall; one after `LATEST` is shown as that."""
    return utc(min(at, LATEST)).astimezone(zone)


def utc(at: int) -> datetime:
    """An instant as a datetime in UTC, exactly; one after the year 9999 as that year's last."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(at, _END))


def instant(when: datetime) -> int:
    """A datetime with a zone as an instant; fractions of a millisecond are cut off."""
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def written(at: int) -> str:
    """An instant as files have it: 2026-11-30T12:00:00.000Z. One before 1970, or after the year 9999, as the
    nearest that `read` takes: a clock may say anything."""
    return utc(max(at, 0)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read(text: object) -> int:
    """The instant that `written` wrote.

    Raises:
        ValueError: it is none, or lies before 1970.
    """
    if not isinstance(text, str) or not re.fullmatch(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", text
    ):
        raise ValueError(f"{text!r} is no instant such as 2026-11-30T12:00:00.000Z")
    at = instant(datetime.fromisoformat(text))
    if at < 0:
        raise ValueError(f"{text} lies before 1970")
    return at
