"""How long a card waits, in words: on the button of each rating, after it, and where the next card is named.

static/waits.js says the same; tests/study/progress/schedules.json holds both to the same waits.
"""

from __future__ import annotations

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MONTH = 304 * DAY // 10
YEAR = 36_525 * DAY // 100


def words(wait: int) -> str:
    """Milliseconds as "1 min", "6 min", "3 h", "12 days", "2 months" or "1.9 years". Minutes are rounded up,
    so that what is left of a wait right after a rating reads as its button did; all else to the nearest,
    halves up. Whole numbers alone are computed with, so that no language rounds otherwise."""
    if wait <= 90 * MINUTE:
        return f"{max(1, -(-wait // MINUTE))} min"
    if wait < 36 * HOUR:
        return f"{_nearest(wait, HOUR)} h"
    if wait < 60 * DAY:
        return f"{_nearest(wait, DAY)} days"
    if wait < 700 * DAY:
        return f"{_nearest(wait, MONTH)} months"
    tenths = _nearest(10 * wait, YEAR)
    return f"{tenths // 10}.{tenths % 10} years"


def _nearest(wait: int, unit: int) -> int:
    return (2 * wait + unit) // (2 * unit)
