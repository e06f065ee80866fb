"""All progress as one file: it comes back whole, or not at all."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logbook import DAY, GUIDE, NOON, new_id, review, table

from headwise.study.progress import (
    BadImport,
    Store,
    add_answer,
    add_mark,
    change_settings,
    export_progress,
    import_progress,
    import_text,
    latest_answers,
    latest_marks,
    transfer,
    undo_review,
)
from headwise.study.progress import store as store_module


def answer(store, question, given, correct, at, rev=1):
    return add_answer(
        store,
        id=new_id(),
        guide=GUIDE,
        question=question,
        rev=rev,
        version="current",
        given=given,
        correct=correct,
        score=float(correct),
        seed=7,
        clock=at,
    )


@pytest.fixture
def filled(store):
    """Progress with one of everything."""
    undone = new_id()
    for number in range(5):
        review(store, f"card-{number}", 1 + number % 4, NOON + number)
    review(store, "card-0", 3, NOON + DAY, id=undone)
    undo_review(store, id=new_id(), undoes=undone, clock=NOON + DAY + 1)
    answer(store, "how-wide", ["a1b2c3"], False, NOON)
    answer(store, "how-wide", ["d4e5f6"], True, NOON + 1)
    answer(store, "what-name", "soft max, “é”", True, NOON + 2, rev=2)
    add_mark(store, id=new_id(), guide=GUIDE, activity="first", done=True, clock=NOON)
    change_settings(store, {"day_start": "05:30", "new_per_day": 3}, clock=NOON)
    return store


LATER = NOON + 4 * DAY


def everything(store):
    return export_progress(store, clock=NOON)


def states(store):
    return table(store, "states")


# 4skinSkywalker/Syllogimous-v4#30
def test_what_was_exported_restores_all_after_a_loss(filled, tmp_path):
    text = json.dumps(everything(filled))
    fresh = Store(tmp_path / "fresh.sqlite3")
    added = import_text(fresh, text, clock=LATER)
    assert added == {"known": 0, "ahead": 0, "reviews": 6, "undos": 1, "answers": 3, "marks": 1}
    assert everything(fresh) == everything(filled)
    assert states(fresh) == states(filled)
    assert latest_answers(fresh, GUIDE) == latest_answers(filled, GUIDE)
    assert latest_marks(fresh, GUIDE) == {"first": True}
    fresh.close()


def test_an_import_twice_changes_nothing(filled):
    before = everything(filled)
    assert import_progress(filled, before, clock=LATER)["known"] == 11
    assert everything(filled) == before


def test_progress_of_two_machines_is_joined_in_either_order(tmp_path):
    one, other = Store(tmp_path / "one.sqlite3"), Store(tmp_path / "other.sqlite3")
    review(one, "a", 3, NOON)
    import_progress(other, everything(one), clock=LATER)
    review(one, "a", 3, NOON + 3 * DAY)
    review(other, "a", 1, NOON + 2 * DAY)  # on the way, on the other machine
    review(other, "b", 4, NOON + 2 * DAY)
    first, second = everything(one), everything(other)
    import_progress(one, second, clock=LATER)
    import_progress(other, first, clock=LATER)
    assert states(one) == states(other)
    assert everything(one) == everything(other)
    assert [row[5] for row in sorted(table(one, "reviews"), key=lambda row: row[6])][1:3] in ([1, 4], [4, 1])
    one.close()
    other.close()


def test_a_review_undone_on_both_machines_is_undone_once(tmp_path):
    one, other, first = Store(tmp_path / "one.sqlite3"), Store(tmp_path / "other.sqlite3"), new_id()
    review(one, "a", 3, NOON, id=first)
    import_progress(other, everything(one), clock=LATER)
    for store in (one, other):
        undo_review(store, id=new_id(), undoes=first, clock=NOON + 1)
    assert import_progress(one, everything(other), clock=LATER)["undos"] == 0
    assert states(one) == []
    one.close()
    other.close()


def broken(change):
    def changed(made):
        change(made)
        return made

    return changed


FAULTS = {
    "another format": (broken(lambda made: made.update(format="x")), "no export of progress"),
    "a newer version": (broken(lambda made: made.update(version=2)), "version 2"),
    "a list gone": (broken(lambda made: made.pop("answers")), "no list 'answers'"),
    "settings gone": (broken(lambda made: made.pop("settings")), "no settings"),
    "a strange part": (broken(lambda made: made.update(colours=[])), "'colours' that is unknown"),
    "a rating of 5": (broken(lambda made: made["reviews"][3].update(rating=5)), "reviews, number 4"),
    "a rating as text": (broken(lambda made: made["reviews"][0].update(rating="3")), "reviews, number 1"),
    "a time without zone": (
        broken(lambda made: made["reviews"][0].update(at="2026-11-30T12:00:00.000")),
        "no instant",
    ),
    "a time before 1970": (
        broken(lambda made: made["marks"][0].update(at="1969-12-31T23:59:59.999Z")),
        "marks, number 1: 1969-12-31T23:59:59.999Z lies before 1970",
    ),
    "the year 0": (
        broken(lambda made: made["answers"][0].update(at="0000-01-01T00:00:00.000Z")),
        "answers, number 1",
    ),
    "digits of another script": (
        broken(lambda made: made["settings"].update(day_start="٠٤:00")),
        "hours and",
    ),
    "a day start that is no text": (
        broken(lambda made: made["settings"].update(day_start=4)),
        "a text such as",
    ),
    "a field too many": (broken(lambda made: made["marks"][0].update(colour="red")), "marks, number 1"),
    "a field gone": (broken(lambda made: made["answers"][2].pop("seed")), "answers, number 3"),
    "an entry that is none": (broken(lambda made: made["reviews"].append(5)), "reviews, number 7"),
    "an id twice": (broken(lambda made: made["reviews"].append(made["reviews"][0])), "the same id"),
    "an undo of nothing": (broken(lambda made: made["undos"][0].update(undoes="never-there")), "isn't there"),
    "a score of 2": (broken(lambda made: made["answers"][0].update(score=2)), "from 0 to 1"),
    "a score that is no number": (broken(lambda made: made["answers"][0].update(score=True)), "from 0 to 1"),
    "a setting that is none": (broken(lambda made: made["settings"].update(day_start="noon")), "hours and"),
    "a list": (lambda made: [made], "no export of progress"),
    "nothing": (lambda made: None, "no export of progress"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_with_any_fault_changes_nothing(filled, tmp_path, fault):
    change, says = FAULTS[fault]
    made = change(copy.deepcopy(everything(filled)))
    fresh = Store(tmp_path / "fresh.sqlite3")
    review(fresh, "mine", 3, NOON)
    before = everything(fresh)
    with pytest.raises(BadImport, match=says) as error:
        import_progress(fresh, made, clock=LATER)
    assert "changed" in str(error.value)
    assert everything(fresh) == before
    fresh.close()


def test_an_id_that_says_something_else_here_changes_nothing(filled, tmp_path):
    made = everything(filled)
    made["reviews"][0]["rating"] = 4
    with pytest.raises(BadImport, match="belongs to another entry"):
        import_progress(filled, made, clock=LATER)


@given(st.data())
def test_a_file_that_was_cut_off_changes_nothing(tmp_path_factory, data):
    store = Store(tmp_path_factory.mktemp("cut") / "p.sqlite3")
    for number in range(3):
        review(store, f"card-{number}", 3, NOON + number)
    text = json.dumps(everything(store))
    fresh = Store(tmp_path_factory.mktemp("cut") / "p.sqlite3")
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(BadImport, match="nothing was changed"):
        import_text(fresh, cut, clock=LATER)
    assert table(fresh, "reviews") == []
    store.close()
    fresh.close()


def test_deeply_nested_text_is_no_import(store):
    with pytest.raises(BadImport):
        import_text(store, "[" * 200_000, clock=LATER)


def test_the_latest_answer_to_each_wording_is_kept_with_its_attempts(filled):
    found = latest_answers(filled, GUIDE)
    assert found["how-wide"]["1"]["correct"] is True
    assert found["how-wide"]["1"]["attempts"] == 2
    assert list(found["what-name"]) == ["2"]
    answer(filled, "how-wide", ["a1b2c3"], False, NOON + 9, rev=2)
    assert set(latest_answers(filled, GUIDE)["how-wide"]) == {"1", "2"}


def test_a_mark_can_be_taken_back(filled):
    add_mark(filled, id=new_id(), guide=GUIDE, activity="first", done=False, clock=NOON + 1)
    assert latest_marks(filled, GUIDE) == {"first": False}
    assert len(table(filled, "marks")) == 2


def test_an_import_computes_only_the_cards_that_it_touches(filled, tmp_path, monkeypatch):
    other = Store(tmp_path / "other.sqlite3")
    import_progress(other, everything(filled), clock=LATER)
    last = new_id()
    review(other, "card-3", 3, NOON + 2 * DAY, id=last)
    review(other, "card-9", 3, NOON + 2 * DAY)
    import_progress(filled, everything(other), clock=LATER)
    undo_review(other, id=new_id(), undoes=last, clock=NOON + 2 * DAY + 1)
    add_mark(other, id=new_id(), guide=GUIDE, activity="second", done=True, clock=NOON)
    computed = []

    def noted(connection, guide, card):
        computed.append((guide, card))
        return store_module.refold(connection, guide, card)

    monkeypatch.setattr(transfer, "refold", noted)
    import_progress(filled, everything(other), clock=LATER)
    assert computed == [(GUIDE, "card-3")]
    assert states(filled) == states(other)
    import_progress(filled, everything(other), clock=LATER)
    assert len(computed) == 1
    other.close()
