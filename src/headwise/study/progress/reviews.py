"""Reviews of cards: added to the log, and undone by another entry in it."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.study.progress import checks, days, waits
from headwise.study.progress.errors import Conflict, Refused
from headwise.study.progress.schedule import CardState, Review, after
from headwise.study.progress.store import Store, keep, refold, state_of

NOTICEABLE = 60_000
"""Milliseconds by which a clock may be off before the learner is told."""


@dataclass(frozen=True)
class Reviewed:
    """What a review or an undo led to.

    Attributes:
        state: of the card now; None for one that is new again.
        wait: in words, from the rating until the card comes back: what the rating's button said. "" after an
            undo, or where the card has another review since.
        repeated: the same entry was there already, and was not added again.
        told: what the learner should know; "" for nothing.
    """

    card: str
    state: CardState | None
    wait: str = ""
    repeated: bool = False
    told: str = ""


def add_review(
    store: Store,
    *,
    id: str,
    guide: str,
    card: str,
    rev: int,
    rating: int,
    expects: str | None,
    clock: int,
    duration: int | None = None,
    when: int | None = None,
) -> Reviewed:
    """Add a review to the log.

    Args:
        id: made by the page, once for each review: sending it again adds nothing.
        expects: id of the card's last review that the page knows of, None for a new card. If the card has got
            another since, in a second tab or by a second server, nothing is added.
        clock: the present instant by the machine's clock. Where it lies before the card's last review (the
            clock was set back), the review counts from just after that one.
        when: the instant at which the rating was given, where it was sent later: it counts from then, but not
            from before the card's last review, nor from later than now.

    Raises:
        Refused: a value makes no sense, or the id belongs to another review.
        Conflict: the card was reviewed in the meantime.
        NotSaved, Damaged: see `Store.writing`.
    """
    checks.check_id(id)
    checks.check_slug(guide, "guide")
    checks.check_slug(card, "card")
    checks.check_whole(rev, "rev", 1, 1_000_000)
    checks.check_whole(rating, "rating", 1, 4)
    if expects is not None:
        checks.check_id(expects)
    if duration is not None:
        checks.check_whole(duration, "duration", 0, checks.LONGEST_DURATION)
    given = checks.check_when(when, clock)
    with store.writing() as connection:
        state = state_of(connection, guide, card)
        known = connection.execute(
            "SELECT guide, card, rev, rating, clock FROM reviews WHERE id = ?", (id,)
        ).fetchone()
        if known is not None:
            if known[:4] != (guide, card, rev, rating):
                raise Refused(f"id {id}: it belongs to another review; make a new one for each")
            wait = waits.words(state.due - known[4]) if state is not None and state.head == id else ""
            return Reviewed(card, state, wait, repeated=True)
        head = state.head if state else None
        if head != expects:
            raise Conflict(_in_the_meantime(state))
        at = given if state is None else max(given, state.last + 1)
        connection.execute(
            "INSERT INTO reviews (id, guide, card, rev, rating, at, clock, duration) "
            "VALUES (?,?,?,?,?,?,?,?)",
            (id, guide, card, rev, rating, at, given, duration),
        )
        new = after(state, Review(id, at, rating, rev))
        keep(connection, guide, card, new)
        return Reviewed(card, new, waits.words(new.due - given), told=set_back(at, clock))


def undo_review(store: Store, *, id: str, undoes: str, clock: int) -> Reviewed:
    """Take a review back: it stays in the log and counts no more.

    Raises:
        Refused: there is no such review, or the id belongs to another undo.
        Conflict: it was undone already, or the card was reviewed again since.
    """
    checks.check_id(id)
    checks.check_id(undoes)
    with store.writing() as connection:
        found = connection.execute("SELECT guide, card FROM reviews WHERE id = ?", (undoes,)).fetchone()
        if found is None:
            raise Refused(f"there is no review {undoes} to undo")
        guide, card = found
        state = state_of(connection, guide, card)
        known = connection.execute("SELECT undoes FROM undos WHERE id = ?", (id,)).fetchone()
        if known is not None:
            if known[0] != undoes:
                raise Refused(f"id {id}: it belongs to another undo; make a new one for each")
            return Reviewed(card, state, repeated=True)
        if connection.execute("SELECT 1 FROM undos WHERE undoes = ?", (undoes,)).fetchone():
            raise Conflict("This review was undone already; nothing was changed.")
        if state is None or state.head != undoes:
            raise Conflict("This card was reviewed again since: undo that review first. Nothing was changed.")
        connection.execute("INSERT INTO undos (id, undoes, at) VALUES (?, ?, ?)", (id, undoes, clock))
        return Reviewed(card, refold(connection, guide, card))


def _in_the_meantime(state: CardState | None) -> str:
    if state is None:
        return "The last review of this card was undone elsewhere. Nothing was added; here is the card again."
    local = days.local_time(state.last)
    return (
        f"This card was already reviewed elsewhere, on {local:%Y-%m-%d} at {local:%H:%M} (another tab or "
        "window?). That review counts; this one was not added."
    )


def set_back(at: int, clock: int) -> str:
    """What to tell where a clock lies behind an instant that the log holds already; "" if it doesn't."""
    if at - clock <= NOTICEABLE:
        return ""
    then, here = days.local_time(at), days.local_time(clock)
    return (
        f"The clock of this computer says {here:%Y-%m-%d %H:%M}, but there is a review of "
        f"{then:%Y-%m-%d %H:%M} already: was the clock set back? No review is lost; cards with a later "
        "review count on from there. If the earlier time was wrong, undo those reviews."
    )
