"""Waits and reviews at the edges of a schedule: asked of Python, and of the browser's modules."""

from logbook import DAY, HOUR, MINUTE, NOON

from headwise.study.progress import Review, days
from headwise.study.progress.schedule import after

WAITS = {
    -5: "1 min",
    0: "1 min",
    1: "1 min",
    MINUTE: "1 min",
    MINUTE + 1: "2 min",
    5 * MINUTE: "5 min",
    5 * MINUTE + 1: "6 min",
    330_000 - 1: "6 min",  # what is left of 5.5 minutes
    330_000: "6 min",  # which "hard" gives a new card
    90 * MINUTE: "90 min",
    90 * MINUTE + 1: "2 h",
    36 * HOUR - 1: "36 h",
    36 * HOUR: "2 days",
    DAY * 5 // 2: "3 days",
    DAY * 60 - 1: "60 days",
    DAY * 60: "2 months",
    DAY * 76: "3 months",  # 2.5 months of 30.4 days
    DAY * 76 - 1: "2 months",
    DAY * 700 - 1: "23 months",
    DAY * 700: "1.9 years",
    DAY * 36_525 // 100 * 9 // 4: "2.3 years",  # 2.25 years
    DAY * 36_500: "99.9 years",
}


def last_days():
    """Reviews in the last week that has a date."""
    end = days.read("9999-12-31T23:59:59.999Z")
    return [Review(f"late-{number:04d}", end - gap, 4) for number, gap in enumerate((6 * DAY, DAY, 0))]


def easy_for_ever():
    """Easy on each due day, until the memory is as stable as it gets, then forgotten and relearnt."""
    steps, state, at = [], None, NOON - 20_000 * DAY
    for rating in (*[4] * 16, 1, 3, 3):
        steps.append(Review(f"{len(steps):08d}", at, rating))
        state = after(state, steps[-1])
        at = state.due
    return steps
