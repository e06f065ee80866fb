"""Writes schedules.json: reviews of cards, and the states that the `fsrs` package makes of them. Python and
the browser's modules are both held to it: python tests/study/progress/make_schedules.py"""

from __future__ import annotations

import json
import random
from pathlib import Path

from headwise.study.progress.schedule import Review, after, previews
from headwise.study.progress.waits import words

FILE = Path(__file__).with_name("schedules.json")
START = 1_796_040_000_000  # 2026-11-30T12:00:00Z
MINUTE, DAY = 60_000, 86_400_000
GAPS = (
    1,
    30_000,
    MINUTE,
    11 * MINUTE,
    DAY // 2 - 1,
    DAY - 1,
    DAY,
    DAY + 1,
    2 * DAY,
    9 * DAY,
    40 * DAY,
    700 * DAY,
)


def cases():
    """Eight goods, agains and easies whose intervals are known, and others drawn with a fixed seed."""
    draw = random.Random(17)
    yield "due each time", [(3, None)] * 4 + [(1, None), (3, None), (4, None)]
    for number in range(60):
        length = draw.choice((1, 2, 3, 5, 8, 13))
        yield f"drawn {number}", [(draw.randint(1, 4), draw.choice((*GAPS, None))) for _ in range(length)]


def made():
    found = []
    for name, steps in cases():
        state, at, reviews, states = None, START, [], []
        for number, (rating, gap) in enumerate(steps):
            if state is not None:
                at = state.due if gap is None else at + gap
            reviews.append({"id": f"{number}", "at": at, "rating": rating, "rev": 1})
            state = after(state, Review(f"{number}", at, rating))
            states.append(state.to_dict())
        following = previews(state, at + DAY)
        waits = {rating: words(due - at - DAY) for rating, due in following.items()}
        found.append({"name": name, "reviews": reviews, "states": states, "next": following, "waits": waits})
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
    print(FILE)
