"""What is to be reviewed today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

from headwise.study.progress import days, waits
from headwise.study.progress.reviews import set_back
from headwise.study.progress.schedule import CardState, previews
from headwise.study.progress.settings import read_settings
from headwise.study.progress.store import Store, counted, states_of

AHEAD = 20 * 60 * 1000
"""A card that is being learnt may be reviewed this much early (milliseconds), if the learner wants to."""


@dataclass(frozen=True)
class DeckCard:
    """A card as the queue needs it, in teaching order."""

    id: str
    rev: int


@dataclass(frozen=True)
class Due:
    """A card of the queue.

    Attributes:
        kind: "changed" (its answer is another since the last review), "learning", "review", "new".
        rev: of the card now.
        head: id of its last review, to be sent back with the next one.
        due: the instant it was due at; None for a new card.
        next: for each rating, the instant at which it would come back.
        waits: the same as the time from now, in words.
    """

    card: str
    kind: str
    rev: int
    head: str | None
    due: int | None
    next: dict[int, int]
    waits: dict[int, str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "card": self.card,
            "kind": self.kind,
            "rev": self.rev,
            "head": self.head,
            "due": self.due,
            "next": {str(rating): at for rating, at in self.next.items()},
            "waits": {str(rating): words for rating, words in self.waits.items()},
        }


@dataclass(frozen=True)
class Queue:
    """What is due.

    Attributes:
        cards: that are due, in the order in which they are asked.
        ahead: cards that are being learnt, due within `AHEAD`: not counted as due.
        day, ends: the learner's day, and the instant at which it ends.
        later: cards that wait for a later time today, and for room among the new ones.
        next_due: when the next card becomes due that is not in `cards`, as the queue will have it: cards in
            review and new ones come when their day begins. None if none will.
        done: reviews of this day that count.
        seen: cards of the deck that were ever reviewed.
        undo: id of the last review that can be undone; None if there is none.
        told: what the learner should know.
    """

    cards: list[Due]
    ahead: list[Due]
    now: int
    day: str
    ends: int
    counts: dict[str, int] = field(default_factory=dict)
    later: int = 0
    next_due: int | None = None
    done: int = 0
    seen: int = 0
    undo: str | None = None
    told: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "cards": [due.to_dict() for due in self.cards],
            "ahead": [due.to_dict() for due in self.ahead],
            "now": self.now,
            "day": self.day,
            "ends": self.ends,
            "counts": self.counts,
            "later": self.later,
            "next_due": self.next_due,
            "done": self.done,
            "seen": self.seen,
            "undo": self.undo,
            "told": self.told,
        }


def queue(
    store: Store, guide: str, deck: Sequence[DeckCard], *, clock: int, zone: tzinfo | None = None
) -> Queue:
    """What is due of a deck: cards whose answer changed, cards being learnt whose minutes have passed, then
    cards whose day has come (however long ago), the longest waiting first, then new ones, as many as a day
    takes.

    Args:
        deck: its cards as the guide has them now; cards that were taken out of it are not asked.
    """
    with store.reading() as connection:
        settings = read_settings(connection)
        states = states_of(connection, guide)
        start = days.starts(days.day_of(clock, settings.day_start, zone), settings.day_start, zone)
        done = connection.execute(
            f"SELECT count(*) FROM reviews WHERE guide = ? AND at >= ? AND {counted('reviews')} >= ? "
            "AND id NOT IN (SELECT undoes FROM undos)",
            (guide, start, start),
        ).fetchone()[0]
        latest = connection.execute("SELECT max(last) FROM states").fetchone()[0]
        heads = connection.execute(
            "SELECT reviews.id, reviews.clock FROM states JOIN reviews ON reviews.id = states.head "
            "WHERE states.guide = ? ORDER BY reviews.seq",
            (guide,),
        ).fetchall()
    ends = days.end_of_day(clock, settings.day_start, zone)
    room = settings.new_per_day - sum(start <= state.first < ends for state in states.values())
    found = sort_out(deck, states, clock=clock, ends=ends, room=room)
    coming = list(found.waiting)
    if found.reviews:
        first = days.day_of(min(found.reviews), settings.day_start, zone)
        coming.append(days.starts(first, settings.day_start, zone))
    if found.held_back and settings.new_per_day:
        coming.append(ends)
    return Queue(
        cards=found.cards,
        ahead=found.ahead,
        now=clock,
        day=days.day_of(clock, settings.day_start, zone).isoformat(),
        ends=ends,
        counts={
            kind: sum(due.kind == kind for due in found.cards)
            for kind in ("changed", "learning", "review", "new")
        },
        later=sum(clock + AHEAD < due < ends for due in found.waiting) + found.held_back,
        next_due=min(coming, default=None),
        done=done,
        seen=sum(card.id in states for card in deck),
        undo=last_given(heads, clock),
        told=set_back(latest, clock) if latest is not None else "",
    )


def last_given(heads: Sequence[tuple[str, int]], clock: int) -> str | None:
    """The rating that was given last of those that can be undone: the last review of each card, as (id, what
    the clock said), in the order in which they were written down.

    That order alone doesn't tell, since an import writes down old ones; nor does the clock, which may have
    been ahead. Where it was, the review was given right after the latest of those written down before it.
    """
    latest, found = 0, []
    for place, (id, said) in enumerate(heads):
        when = said if said <= clock else latest
        latest = max(latest, when)
        found.append((when, place, id))
    return max(found)[2] if found else None


@dataclass(frozen=True)
class Sorted:
    """The cards of a deck, sorted.

    Attributes:
        cards, ahead: see `Queue`.
        waiting: when those come that are being learnt, the ones ahead among them, the soonest first.
        reviews: when those come whose day is a later one.
        held_back: new cards for which this day has no room.
    """

    cards: list[Due]
    ahead: list[Due]
    waiting: list[int]
    reviews: list[int]
    held_back: int


def sort_out(
    deck: Sequence[DeckCard], states: dict[str, CardState], *, clock: int, ends: int, room: int
) -> Sorted:
    """Which cards are asked now, in which order, and which wait."""
    changed, learning, review, new, waiting = [], [], [], [], []
    held_back, reviews = 0, []
    for card in deck:
        state = states.get(card.id)
        if state is None:
            if room > 0:
                room -= 1
                new.append(_due(card, None, "new", clock))
            else:
                held_back += 1
        elif state.rev < card.rev:
            changed.append(_due(card, state, "changed", clock))
        elif state.state == "review":
            if state.due < ends:
                review.append(_due(card, state, "review", clock))
            else:
                reviews.append(state.due)
        elif state.due <= clock:
            learning.append(_due(card, state, "learning", clock))
        else:
            waiting.append((state.due, card, state))
    learning.sort(key=lambda due: due.due or 0)
    review.sort(key=lambda due: due.due or 0)
    waiting.sort(key=lambda entry: entry[0])
    return Sorted(
        cards=changed + learning + review + new,
        ahead=[_due(card, state, "learning", clock) for due, card, state in waiting if due <= clock + AHEAD],
        waiting=[due for due, _, _ in waiting],
        reviews=reviews,
        held_back=held_back,
    )


def _due(card: DeckCard, state: CardState | None, kind: str, clock: int) -> Due:
    following = previews(state, clock)
    return Due(
        card=card.id,
        kind=kind,
        rev=card.rev,
        head=state.head if state else None,
        due=state.due if state else None,
        next=following,
        waits={rating: waits.words(at - clock) for rating, at in following.items()},
    )
