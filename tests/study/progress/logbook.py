"""What the tests of progress share: ids, decks, and reviews in one line."""

from __future__ import annotations

import itertools

from headwise.study.progress import DeckCard, add_review, queue

GUIDE = "small"
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOON = 1_796_040_000_000  # 2026-11-30T12:00:00Z
_numbers = itertools.count(1)


def new_id() -> str:
    return f"entry-{next(_numbers):08d}"


def deck(*cards, rev=1):
    return [DeckCard(card, rev) for card in cards]


def review(store, card, rating, at, *, expects=..., rev=1, id=None):
    """Review a card as a page does that has just looked."""
    if expects is ...:
        with store.reading() as connection:
            found = connection.execute(
                "SELECT head FROM states WHERE guide = ? AND card = ?", (GUIDE, card)
            ).fetchone()
        expects = found[0] if found else None
    return add_review(
        store,
        id=id or new_id(),
        guide=GUIDE,
        card=card,
        rev=rev,
        rating=rating,
        expects=expects,
        clock=at,
    )


def due(store, cards, at, zone=None):
    """Which cards are due, in order."""
    return [one.card for one in queue(store, GUIDE, cards, clock=at, zone=zone).cards]


def table(store, name):
    with store.reading() as connection:
        return connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
