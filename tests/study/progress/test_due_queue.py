"""What is to be reviewed today."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logbook import DAY, GUIDE, HOUR, MINUTE, NOON, deck, due, new_id, review, table

from headwise.study.progress import (
    DeckCard,
    Store,
    change_settings,
    export_progress,
    import_progress,
    queue,
    undo_review,
)
from headwise.study.progress import days as study_days

CARDS = deck(*(f"card-{number}" for number in range(13)))


def look(store, cards, at):
    return queue(store, GUIDE, cards, clock=at, zone=UTC)


def test_a_day_brings_a_few_new_cards_in_teaching_order(store):
    assert due(store, CARDS, NOON, UTC) == [f"card-{number}" for number in range(10)]
    assert look(store, CARDS, NOON).later == 3
    change_settings(store, {"new_per_day": 2}, clock=NOON)
    review(store, "card-0", 4, NOON)
    assert due(store, CARDS, NOON, UTC) == ["card-1"]
    assert due(store, CARDS, NOON + DAY, UTC) == ["card-1", "card-2"]


def test_learning_cards_come_after_their_minutes(store):
    change_settings(store, {"new_per_day": 2}, clock=NOON)
    cards = deck("a", "b")
    review(store, "a", 1, NOON)
    assert due(store, cards, NOON + 1, UTC) == ["b"]
    assert due(store, cards, NOON + MINUTE, UTC) == ["a", "b"]
    assert [one.kind for one in look(store, cards, NOON + MINUTE).cards] == ["learning", "new"]


def test_cards_of_the_next_minutes_are_ahead_and_not_due(store):
    review(store, "a", 3, NOON)  # comes back after 10 minutes
    review(store, "b", 1, NOON + MINUTE)  # after one
    review(store, "c", 4, NOON)  # after days
    cards = deck("a", "b", "c", "d")
    found = look(store, cards, NOON + MINUTE + 1)
    assert [one.card for one in found.cards] == ["d"]
    assert found.counts == {"changed": 0, "learning": 0, "review": 0, "new": 1}
    assert [one.card for one in found.ahead] == ["b", "a"]
    assert (found.next_due, found.later, found.seen) == (NOON + 2 * MINUTE, 0, 3)
    assert [one.card for one in look(store, cards, NOON + 2 * MINUTE).cards] == ["b", "d"]


def test_a_rating_gives_what_its_button_said(store):
    cards, at = deck("a", "b", "c"), NOON
    for number in range(40):
        at += (7 * MINUTE, 3 * HOUR, 2 * DAY, 11 * DAY)[number % 4]
        found = look(store, cards, at)
        for one in found.cards[:1] + found.ahead[:1]:
            rating = 1 + (number * 7 // 3) % 4
            at += 1499  # somebody thinks before rating
            told = review(store, one.card, rating, at).wait
            assert told == one.waits[rating], (number, one)
    assert len(table(store, "reviews")) > 30


def test_the_button_of_hard_says_what_hard_gives(store):
    (first,) = look(store, deck("a"), NOON).cards
    assert first.waits == {1: "1 min", 2: "6 min", 3: "10 min", 4: "8 days"}
    id = new_id()
    assert review(store, "a", 2, NOON + 1, id=id).wait == "6 min"
    assert review(store, "a", 2, NOON + 9, id=id, expects=None).wait == "6 min"  # the same, sent again


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_review_of_the_year_9999_breaks_no_queue_and_no_export(store, tmp_path, zone):
    last = study_days.read("9999-12-31T23:59:59.999Z")
    review(store, "a", 4, last)  # a clock that was far ahead
    review(store, "b", 3, NOON)
    here = ZoneInfo(zone)
    for at in (NOON + HOUR, last):
        found = queue(store, GUIDE, deck("a", "b", "c"), clock=at, zone=here)
        assert {one.card for one in found.cards} >= {"b", "c"}
        assert all(set(one.next) == {1, 2, 3, 4} for one in found.cards)
    assert "9999-12-28" in look(store, deck("a"), NOON).told
    review(store, "a", 3, NOON + DAY)  # counts on from there, after the end of all dates
    made = export_progress(store, clock=NOON + DAY)
    assert [entry["at"][:10] for entry in made["reviews"]] == ["2026-11-30", "9999-12-31", "9999-12-31"]
    other = Store(tmp_path / "other.sqlite3")
    import_progress(other, made, clock=last)
    assert look(other, deck("a", "b", "c"), NOON + HOUR).seen == 2
    other.close()


# st3v3nmw/obsidian-spaced-repetition#294, #221
def test_an_overdue_card_stays_listed_and_its_next_interval_counts_from_the_review(store):
    state = review(store, "a", 4, NOON).state
    assert state.due == NOON + 8 * DAY
    for days in range(8, 39, 5):
        assert due(store, deck("a"), NOON + days * DAY, UTC) == ["a"]
    late = NOON + 38 * DAY
    after = review(store, "a", 3, late).state
    assert after.due > late + 8 * DAY
    assert (after.due - late) % DAY == 0


def test_the_longest_waiting_card_comes_first(store):
    for number, card in enumerate("cab"):
        review(store, card, 4, NOON + number * HOUR)
    assert due(store, deck("a", "b", "c"), NOON + 9 * DAY, UTC) == ["c", "a", "b"]


def test_a_card_with_another_answer_is_offered_again_and_keeps_its_history(store):
    review(store, "a", 4, NOON)
    changed = [DeckCard("a", 2)]
    (found,) = look(store, changed, NOON + DAY).cards
    assert (found.kind, found.rev) == ("changed", 2)
    state = review(store, "a", 3, NOON + DAY, rev=2).state
    assert (state.reviews, state.rev) == (2, 2)
    assert due(store, changed, NOON + DAY + 1, UTC) == []


def test_cards_that_left_the_deck_are_not_asked(store):
    review(store, "gone", 4, NOON)
    assert due(store, deck("a"), NOON + 30 * DAY, UTC) == ["a"]
    assert len(table(store, "reviews")) == 1


def test_the_queue_says_when_the_next_card_comes(store):
    state = review(store, "a", 4, NOON).state
    found = look(store, deck("a"), NOON + HOUR)
    day = study_days.starts(study_days.day_of(state.due, zone=UTC), zone=UTC)
    assert day < state.due  # the card is in the queue from the beginning of its day on
    assert (found.cards, found.next_due, found.later, found.done) == ([], day, 0, 1)
    assert look(store, deck("a"), day - 1).cards == []
    assert [one.card for one in look(store, deck("a"), day).cards] == ["a"]
    assert look(store, deck(), NOON).next_due is None


def test_new_cards_for_which_a_day_has_no_room_come_with_the_next_day(store):
    change_settings(store, {"new_per_day": 1}, clock=NOON)
    review(store, "a", 4, NOON)
    found = look(store, deck("a", "b"), NOON + HOUR)
    assert (found.cards, found.later, found.next_due) == ([], 1, found.ends)
    assert [one.card for one in look(store, deck("a", "b"), found.ends).cards] == ["b"]
    change_settings(store, {"new_per_day": 0}, clock=NOON)
    assert look(store, deck("b"), NOON).next_due is None


def test_what_can_be_undone_is_the_last_review_that_counts(store):
    cards = deck("a", "b")
    assert look(store, cards, NOON).undo is None
    first, second = new_id(), new_id()
    review(store, "a", 3, NOON, id=first)
    review(store, "b", 3, NOON + 1, id=second)
    assert look(store, cards, NOON + 2).undo == second
    undo_review(store, id=new_id(), undoes=second, clock=NOON + 3)
    found = look(store, cards, NOON + 4)
    assert (found.undo, found.done) == (first, 1)


def test_a_review_of_the_future_does_not_hide_the_one_just_given(store):
    cards = deck("a", "b", "c")
    ids = {card: new_id() for card in "abc"}
    review(store, "a", 3, NOON, id=ids["a"])
    review(store, "b", 3, NOON + 30 * DAY, id=ids["b"])  # the clock was ahead for a moment
    review(store, "c", 3, NOON + HOUR, id=ids["c"])
    at = NOON + 2 * HOUR
    undone = []
    while look(store, cards, at).undo:
        undone.append(look(store, cards, at).undo)
        undo_review(store, id=new_id(), undoes=undone[-1], clock=at)
    assert undone == [ids["c"], ids["b"], ids["a"]]  # as they were given


def test_a_card_reviewed_after_its_future_review_is_not_taken_for_the_last(store):
    cards = deck("a", "b")
    first, second, third = (new_id() for _ in range(3))
    review(store, "a", 3, NOON + 30 * DAY, id=first)
    review(store, "a", 3, NOON, id=second)  # counts from just after the one before
    review(store, "b", 3, NOON + MINUTE, id=third)
    assert look(store, cards, NOON + HOUR).undo == third


def test_an_import_of_old_reviews_does_not_hide_the_one_just_given(store, tmp_path):
    other, last = Store(tmp_path / "other.sqlite3"), new_id()
    review(other, "old", 3, NOON - 40 * DAY)
    review(store, "new", 3, NOON, id=last)
    import_progress(store, export_progress(other, clock=NOON), clock=NOON)
    assert look(store, deck("old", "new"), NOON + MINUTE).undo == last
    other.close()


def test_a_clock_that_was_set_back_is_told(store):
    review(store, "a", 3, NOON)
    assert look(store, deck("a"), NOON - 30_000).told == ""
    told = look(store, deck("a"), NOON - 30 * DAY).told
    assert "was the clock set back?" in told
    assert "No review is lost" in told


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(1, 4), st.integers(0, 3 * DAY)), max_size=25),
    st.integers(0, 12),
    st.integers(0, 60 * DAY),
)
def test_every_card_is_asked_waits_or_is_known_to_come(tmp_path_factory, steps, room, later):
    store = Store(tmp_path_factory.mktemp("queue") / "p.sqlite3")
    cards = deck(*"abcdefg")
    change_settings(store, {"new_per_day": room}, clock=NOON)
    at = NOON
    for card, rating, gap in steps:
        at += gap + 1
        review(store, card, rating, at)
    found = look(store, cards, at + later)
    asked = [one.card for one in found.cards]
    assert len(set(asked)) == len(asked)
    seen = {card for card, _, _ in steps}
    ends = study_days.end_of_day(at + later, zone=UTC)
    for row in table(store, "states"):
        card, state, when = row[1], row[2], row[6]
        if state == "review":
            assert (card in asked) == (when < ends)
        elif when <= at + later:
            assert card in asked
    assert all(card in seen or room for card in asked)
    assert sum(found.counts.values()) == len(asked)
    assert found.next_due is None or found.next_due > at + later
    early = [one.card for one in found.ahead]
    assert not set(early) & set(asked)
    assert (found.seen, len(early) <= len(seen)) == (len(seen), True)
    if not asked and found.next_due is not None:  # nothing is due before then, and something is then
        assert look(store, cards, found.next_due - 1).cards == []
        assert look(store, cards, found.next_due).cards != []
    store.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"day_start": "noon"}, "hours and minutes"),
        ({"new_per_day": -1}, "from 0 to 9999"),
        ({"new_per_day": True}, "from 0 to 9999"),
        ({"shortcuts": 1}, "true or false"),
        ({"colour": "red"}, "there is no setting 'colour'"),
        ({"new_per_day": 5, "day_start": "25:00"}, "hours and minutes"),
    ],
)
def test_settings_that_make_no_sense_change_nothing(store, change, says):
    from headwise.study.progress import Refused

    with pytest.raises(Refused, match=says):
        change_settings(store, change, clock=NOON)
    assert table(store, "settings") == []
