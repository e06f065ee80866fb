"""What is to be reviewed today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

from headwise.study.progress import days
from headwise.study.progress.reviews import set_back
from headwise.study.progress.schedule import CardState, previews
from headwise.study.progress.settings import read_settings
from headwise.study.progress.store import Store, states_of

AHEAD = 20 * 60 * 1000
"""A card that is being learnt may come this much early (milliseconds) when nothing else is left."""


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
    """

    card: str
    kind: str
    rev: int
    head: str | None
    due: int | None
    next: dict[int, int]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "card": self.card,
            "kind": self.kind,
            "rev": self.rev,
            "head": self.head,
            "due": self.due,
            "next": {str(rating): at for rating, at in self.next.items()},
        }


@dataclass(frozen=True)
class Queue:
    """What is due.

    Attributes:
        cards: in the order in which they are asked.
        day, ends: the learner's day, and the instant at which it ends.
        later: cards that wait for a time today, and for room among the new ones.
        next_due: when the next card comes that is not in `cards`; None if none will.
        done: reviews of this day that count.
        undo: id of the last review that can be undone; None if there is none.
        told: what the learner should know.
    """

    cards: list[Due]
    now: int
    day: str
    ends: int
    counts: dict[str, int] = field(default_factory=dict)
    later: int = 0
    next_due: int | None = None
    done: int = 0
    undo: str | None = None
    told: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "cards": [due.to_dict() for due in self.cards],
            "now": self.now,
            "day": self.day,
            "ends": self.ends,
            "counts": self.counts,
            "later": self.later,
            "next_due": self.next_due,
            "done": self.done,
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
            "SELECT count(*) FROM reviews WHERE guide = ? AND at >= ? "
            "AND id NOT IN (SELECT undoes FROM undos)",
            (guide, start),
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
    return Queue(
        cards=found.cards,
        now=clock,
        day=days.day_of(clock, settings.day_start, zone).isoformat(),
        ends=ends,
        counts={
            kind: sum(due.kind == kind for due in found.cards)
            for kind in ("changed", "learning", "review", "new")
        },
        later=found.later,
        next_due=found.next_due,
        done=done,
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


@dataclass
class _Found:
    cards: list[Due]
    later: int = 0
    next_due: int | None = None


def sort_out(
    deck: Sequence[DeckCard], states: dict[str, CardState], *, clock: int, ends: int, room: int
) -> _Found:
    """Which cards are asked now, in which order, and which wait."""
    changed, learning, review, new, waiting = [], [], [], [], []
    held_back, future = 0, []
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
                future.append(state.due)
        elif state.due <= clock:
            learning.append(_due(card, state, "learning", clock))
        else:
            waiting.append((state.due, card, state))
    learning.sort(key=lambda due: due.due or 0)
    review.sort(key=lambda due: due.due or 0)
    cards = changed + learning + review + new
    waiting.sort(key=lambda entry: entry[0])
    if not cards:  # nothing else is left: the next minutes need not be waited for
        soon = [entry for entry in waiting if entry[0] <= clock + AHEAD]
        cards = [_due(card, state, "learning", clock) for _, card, state in soon]
        waiting = waiting[len(soon) :]
    future += [entry[0] for entry in waiting]
    today = sum(due < ends for due in future) + held_back
    return _Found(cards, today, min(future, default=None))


def _due(card: DeckCard, state: CardState | None, kind: str, clock: int) -> Due:
    return Due(
        card=card.id,
        kind=kind,
        rev=card.rev,
        head=state.head if state else None,
        due=state.due if state else None,
        next=previews(state, clock),
    )
