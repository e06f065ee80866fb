"""A clock that ran ahead: what was written under it is exported, can be imported, and plans nothing into a
time that nobody will see."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logbook import DAY, GUIDE, MINUTE, NOON, deck, due, new_id, review, table

from headwise.study.progress import (
    Conflict,
    Store,
    add_answer,
    add_mark,
    change_settings,
    export_progress,
    import_progress,
    import_text,
    latest_answers,
    latest_marks,
    queue,
    undo_review,
)
from headwise.study.progress.days import written
from headwise.study.progress.store import rebuild

AHEAD = NOON + 3 * DAY
CARDS = ("a", "b")


def everything(store):
    return export_progress(store, clock=NOON)


def state(store, card):
    with store.reading() as connection:
        return connection.execute("SELECT due, last, reviews FROM states WHERE card = ?", (card,)).fetchone()


@pytest.fixture
def other(tmp_path):
    made = Store(tmp_path / "other.sqlite3")
    yield made
    made.close()


def test_a_review_under_a_clock_ahead_that_was_undone_spoils_no_backup(store, other):
    wrong = new_id()
    review(store, "a", 3, AHEAD, id=wrong)
    undo_review(store, id=new_id(), undoes=wrong, clock=AHEAD)
    review(store, "a", 3, NOON)
    text = json.dumps(everything(store))
    assert import_text(store, text, clock=NOON + 1) == {
        "known": 3, "ahead": 0, "reviews": 0, "undos": 0, "answers": 0, "marks": 0
    }  # fmt: skip
    assert import_text(other, text, clock=NOON + 1)["ahead"] == 0  # it counts from nothing
    assert table(other, "states") == table(store, "states")
    assert everything(other) == everything(store)


def test_reviews_of_later_than_now_count_from_the_import_in_their_order(store, other):
    review(store, "a", 3, AHEAD)
    review(store, "a", 1, AHEAD + DAY)
    review(store, "b", 3, NOON)
    made = everything(store)
    assert import_progress(other, made, clock=NOON + MINUTE)["ahead"] == 2
    assert state(other, "a") == (NOON + 2 * MINUTE + 1, NOON + MINUTE + 1, 2)  # a minute after "again"
    assert state(other, "b") == state(store, "b")
    assert everything(other) == made  # as it was written
    with other.writing() as connection:
        rebuild(connection)
    assert state(other, "a")[1] == NOON + MINUTE + 1
    found = queue(other, GUIDE, deck(*CARDS), clock=NOON + 3 * MINUTE)
    assert (found.done, found.told) == (3, "")
    assert review(other, "a", 3, NOON + 3 * MINUTE).state.last == NOON + 3 * MINUTE


def test_an_import_again_with_the_right_clock_sets_right_what_one_behind_did(store, other):
    review(store, "a", 3, NOON)
    review(store, "a", 3, NOON + 10 * MINUTE)
    made = everything(store)
    behind = NOON - 2000 * DAY
    assert import_progress(other, made, clock=behind)["ahead"] == 2
    assert state(other, "a")[1] == behind + 1
    assert import_progress(other, made, clock=NOON + MINUTE)["ahead"] == 1
    assert state(other, "a")[1] == NOON + MINUTE
    assert import_progress(other, made, clock=NOON + DAY)["ahead"] == 0
    assert table(other, "states") == table(store, "states")
    assert table(other, "arrivals") == []


def test_answers_and_marks_of_later_than_now_are_outdone_by_those_after_the_import(store, other):
    given = {"guide": GUIDE, "question": "q", "rev": 1, "version": "current", "seed": 1}
    add_answer(store, id=new_id(), **given, given="1", correct=False, score=0.0, clock=AHEAD)
    add_mark(store, id=new_id(), guide=GUIDE, activity="x", done=True, clock=AHEAD)
    assert import_progress(other, everything(store), clock=NOON)["ahead"] == 2
    assert latest_answers(other, GUIDE)["q"]["1"]["at"] == NOON
    add_answer(other, id=new_id(), **given, given="2", correct=True, score=1.0, clock=NOON + 1)
    add_mark(other, id=new_id(), guide=GUIDE, activity="x", done=False, clock=NOON + 1)
    assert latest_answers(other, GUIDE)["q"]["1"]["given"] == "2"
    assert latest_marks(other, GUIDE) == {"x": False}


def test_a_clock_that_is_seconds_ahead_is_not_worth_a_word(store, other):
    review(store, "a", 3, NOON + MINUTE)
    assert import_progress(other, everything(store), clock=NOON)["ahead"] == 0


CLOCKS = (
    -5 * DAY,
    0,
    NOON - 400 * DAY,
    NOON,
    NOON + MINUTE,
    AHEAD,
    NOON + 4000 * DAY,
    253_402_300_799_999 + DAY,
)
steps = st.lists(
    st.tuples(
        st.sampled_from(("good", "again", "undo", "mark", "answer")),
        st.sampled_from(CLOCKS),
        st.integers(0, 10 * MINUTE),
    ),
    max_size=10,
)


def live(store, given):
    """What a learner does whose clock jumps."""
    for number, (what, clock, more) in enumerate(given):
        at, card = clock + more, CARDS[number % 2]
        if what in ("good", "again"):
            review(store, card, 3 if what == "good" else 1, at)
        elif what == "mark":
            add_mark(store, id=new_id(), guide=GUIDE, activity="x", done=bool(number % 2), clock=at)
        elif what == "answer":
            add_answer(
                store, id=new_id(), guide=GUIDE, question="q", rev=1, version="current", given=["x"],
                correct=True, score=0.5, seed=number, clock=at,
            )  # fmt: skip
        else:
            head = queue(store, GUIDE, deck(*CARDS), clock=at if at > 0 else 0).undo
            if head is not None:
                undo_review(store, id=new_id(), undoes=head, clock=at)


@settings(max_examples=40, deadline=None)
@given(steps, st.sampled_from(CLOCKS), st.sampled_from(CLOCKS[1:]))
def test_whatever_was_exported_can_be_imported(tmp_path_factory, given, wrote, reads):
    folder = tmp_path_factory.mktemp("clocks")
    store, fresh = Store(folder / "p.sqlite3"), Store(folder / "fresh.sqlite3")
    try:
        live(store, given)
        before = table(store, "states")
        made = json.loads(json.dumps(export_progress(store, clock=wrote)))
        entries = sum(len(made[kind]) for kind in ("reviews", "undos", "answers", "marks"))
        assert import_progress(store, made, clock=reads)["known"] == entries
        assert table(store, "states") == before
        for _ in range(2):
            import_progress(fresh, made, clock=reads)
            assert everything(fresh) == everything(store)
        with fresh.reading() as connection:
            latest = connection.execute("SELECT max(last) FROM states").fetchone()[0]
        assert latest is None or latest <= reads + len(given)  # a millisecond for each
        assert set(due(fresh, deck(*CARDS), reads)) <= set(CARDS)
    finally:
        store.close()
        fresh.close()


def test_settings_of_a_file_are_taken_whatever_the_clock(store, other):
    change_settings(store, {"new_per_day": 3}, clock=AHEAD)
    import_progress(other, everything(store), clock=NOON)
    assert everything(other)["settings"]["new_per_day"] == 3


def test_what_an_import_brought_is_conflicted_with_as_ever(store, other):
    review(store, "a", 3, AHEAD)
    made = everything(store)
    import_progress(other, made, clock=NOON)
    with pytest.raises(Conflict):
        review(other, "a", 3, NOON + 1, expects=None)
    assert made["reviews"][0]["at"] == written(AHEAD)
