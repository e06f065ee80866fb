"""Writes schedules.json: reviews of cards, and the states that the `fsrs` package makes of them, asked by
itself: nothing of headwise has a part in states and instants. Python and the browser's modules are both held
to it: python tests/study/progress/make_schedules.py"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fsrs import Card, Rating, Scheduler, State

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


SCHEDULER = Scheduler(
    desired_retention=0.9,
    learning_steps=(timedelta(minutes=1), timedelta(minutes=10)),
    relearning_steps=(timedelta(minutes=10),),
    enable_fuzzing=False,
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reviewed(card, rating, at):
    """What the package makes of a card; the card itself stays as it is."""
    return SCHEDULER.review_card(card, Rating(rating), EPOCH + timedelta(milliseconds=at))[0]


def instant(when):
    return (when - EPOCH) // timedelta(milliseconds=1)


def made():
    found = []
    for name, steps in cases():
        card, at, lapses, reviews, states = Card(card_id=1), START, 0, [], []
        for number, (rating, gap) in enumerate(steps):
            if number:
                at = instant(card.due) if gap is None else at + gap
            reviews.append({"id": f"{number}", "at": at, "rating": rating, "rev": 1})
            lapses += card.state == State.Review and rating == Rating.Again
            card = reviewed(card, rating, at)
            states.append(
                {
                    "state": card.state.name.lower(),
                    "step": card.step,
                    "stability": card.stability,
                    "difficulty": card.difficulty,
                    "due": instant(card.due),
                    "last": at,
                    "first": START,
                    "reviews": number + 1,
                    "lapses": lapses,
                    "rev": 1,
                    "head": f"{number}",
                }
            )
        following = {rating: instant(reviewed(card, rating, at + DAY).due) for rating in (1, 2, 3, 4)}
        waits = {rating: words(due - at - DAY) for rating, due in following.items()}
        found.append({"name": name, "reviews": reviews, "states": states, "next": following, "waits": waits})
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
    print(FILE)
