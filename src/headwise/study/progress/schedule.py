"""When a card comes back: FSRS (the `fsrs` package), folded over the card's reviews.

What is kept is the log of reviews alone. A card's state is what the scheduler makes of the card's reviews in
their order, and so can be computed again at any time: after an undo, an import, a new version of the
scheduler. Nothing is drawn by chance (`enable_fuzzing` is off), or a fold would differ each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from fsrs import Card, Rating, Scheduler, State

from headwise.study.progress import days

RATINGS = {1: "again", 2: "hard", 3: "good", 4: "easy"}
RETENTION = 0.9
LEARNING_STEPS = (timedelta(minutes=1), timedelta(minutes=10))
RELEARNING_STEPS = (timedelta(minutes=10),)
MOST_STABLE = 36_500.0
"""Days. ts-fsrs, which plans in the browser, lets a stability grow no further, and a card waits no longer."""

LAWS = f"fsrs {version('fsrs')}, retention {RETENTION}, 3"
"""Changes when a fold gives other states than before: kept states are then computed again."""

_BASE = datetime(1, 1, 1, tzinfo=UTC)
"""Where the scheduler sees a card's last review. Only differences of instants count for it, and from here on
any of them, with the longest wait after it, is a date."""

_scheduler = Scheduler(
    desired_retention=RETENTION,
    learning_steps=LEARNING_STEPS,
    relearning_steps=RELEARNING_STEPS,
    enable_fuzzing=False,
)


@dataclass(frozen=True)
class Review:
    """One entry of the log that counts: it was not undone.

    Attributes:
        at: the instant that the scheduler counts from.
        rating: 1 again, 2 hard, 3 good, 4 easy.
    """

    id: str
    at: int
    rating: int
    rev: int = 1


@dataclass(frozen=True)
class CardState:
    """What the reviews of a card amount to.

    Attributes:
        state: "learning", "review" or "relearning".
        step: of the learning steps; None in "review".
        stability, difficulty: FSRS's memory of the card: days until recall falls to 90 %, and 1 to 10.
        due, last, first: instants: when it comes back, its last review, its first.
        reviews, lapses: how many reviews, and how many of them found a card of "review" forgotten.
        rev: of the card, at its last review.
        head: id of the last review.
    """

    state: str
    step: int | None
    stability: float
    difficulty: float
    due: int
    last: int
    first: int
    reviews: int
    lapses: int
    rev: int
    head: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def fold(reviews: Iterable[Review]) -> CardState | None:
    """The state after these reviews of one card, which are in their order; None where there are none.

    Two reviews of the same instant, as an import from another machine may bring, count a millisecond apart.
    """
    state: CardState | None = None
    for review in reviews:
        if state is not None and review.at <= state.last:
            review = replace(review, at=state.last + 1)
        state = after(state, review)
    return state


def after(state: CardState | None, review: Review) -> CardState:
    """The state that a review makes of a state; None is a new card. It comes back no later than
    `days.LATEST`, or at once where the review itself is later.

    Raises:
        ValueError: the review is not later than the one before it. The scheduler would take it without a
            word and plan into the past.
    """
    if state is not None and review.at <= state.last:
        raise ValueError(f"a review at {days.written(review.at)} follows one at {days.written(state.last)}")
    now = _seen(state, review.at)
    card, _ = _scheduler.review_card(_card(state), Rating(review.rating), now)
    wait = (card.due - now) // timedelta(milliseconds=1)
    return _state(card, state, review, due=min(review.at + wait, max(review.at, days.LATEST)))


def previews(state: CardState | None, at: int) -> dict[int, int]:
    """For each rating, the instant at which the card would come back if it were given now."""
    if state is not None:
        at = max(at, state.last + 1)
    return {rating: after(state, Review("", at, rating)).due for rating in RATINGS}


def recall(state: CardState, at: int) -> float:
    """The chance that the card is known at an instant."""
    return float(_scheduler.get_card_retrievability(_card(state), _seen(state, at)))


def _seen(state: CardState | None, at: int) -> datetime:
    """An instant as the scheduler sees it: counted from the card's last review."""
    return _BASE if state is None else _BASE + timedelta(milliseconds=at - state.last)


def _card(state: CardState | None) -> Card:
    # A card_id of our own: the package would wait a millisecond for one. Our cards are known by their names.
    if state is None:
        return Card(card_id=0, due=_BASE)
    return Card(
        card_id=0,
        state=State[state.state.capitalize()],
        step=state.step,
        stability=state.stability,
        difficulty=state.difficulty,
        due=_BASE,  # the scheduler doesn't look at it
        last_review=_BASE,
    )


def _state(card: Card, before: CardState | None, review: Review, *, due: int) -> CardState:
    if card.stability is None or card.difficulty is None:
        raise RuntimeError(f"the scheduler left a card without a state after {review}")
    forgotten = before is not None and before.state == "review" and review.rating == Rating.Again
    return CardState(
        state=card.state.name.lower(),
        step=card.step,
        stability=min(card.stability, MOST_STABLE),
        difficulty=card.difficulty,
        due=due,
        last=review.at,
        first=before.first if before else review.at,
        reviews=(before.reviews if before else 0) + 1,
        lapses=(before.lapses if before else 0) + forgotten,
        rev=review.rev,
        head=review.id,
    )
