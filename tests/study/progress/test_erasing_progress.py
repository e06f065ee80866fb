"""Erasing a profile's progress: all of it, for good, and nothing else."""

import pytest
from logbook import DAY, GUIDE, HOUR, NOON, deck, due, new_id, review, table

from headwise.study.progress import (
    Conflict,
    Settings,
    Store,
    add_answer,
    add_mark,
    change_settings,
    erase_progress,
    export_progress,
    import_progress,
    kept,
    read_settings,
    undo_review,
)

LOGS = ("reviews", "undos", "answers", "marks", "states")


def learn(store):
    review(store, "a", 3, NOON)
    last = new_id()
    review(store, "b", 4, NOON + 1, id=last)
    undo_review(store, id=new_id(), undoes=last, clock=NOON + 2)
    add_answer(
        store,
        id=new_id(),
        guide=GUIDE,
        question="q",
        rev=1,
        version="current",
        given="SECRETGIVEN",
        correct=False,
        score=0.0,
        seed=1,
        clock=NOON,
    )
    for guide in (GUIDE, "another"):
        add_mark(store, id=new_id(), guide=guide, activity="first", done=True, clock=NOON)
    change_settings(store, {"new_per_day": 3}, clock=NOON)


def test_everything_goes_but_the_settings(store):
    learn(store)
    assert kept(store) == {"reviews": 2, "answers": 1, "marks": 2}
    assert erase_progress(store) == {"reviews": 2, "answers": 1, "marks": 2}
    assert {name: table(store, name) for name in LOGS} == {name: [] for name in LOGS}
    assert kept(store) == {"reviews": 0, "answers": 0, "marks": 0}
    with store.reading() as connection:
        assert read_settings(connection) == Settings(new_per_day=3)
    assert due(store, deck("a", "b"), NOON + DAY) == ["a", "b"]  # new again


def test_other_profiles_stay_as_they_are(store, tmp_path):
    other = Store(tmp_path / "eve.sqlite3")
    learn(store), learn(other)
    before = export_progress(other, clock=NOON)
    erase_progress(store)
    assert export_progress(other, clock=NOON) == before
    assert len(before["reviews"]) == 2
    other.close()


def test_what_was_erased_is_nowhere_on_the_disk(store):
    learn(store)

    def on_disk():
        files = store.file.parent.glob(f"{store.file.name}*")
        return any(b"SECRETGIVEN" in file.read_bytes() for file in files)

    assert on_disk()
    erase_progress(store)
    assert not on_disk()


def test_the_log_is_guarded_again_and_an_export_brings_everything_back(store):
    learn(store)
    made = export_progress(store, clock=NOON + HOUR)
    before = table(store, "states")
    erase_progress(store)
    erase_progress(store)  # nothing is left, and that is no fault
    import_progress(store, made, clock=NOON + HOUR)
    assert export_progress(store, clock=NOON + HOUR) == made
    assert table(store, "states") == before
    for verb in ("DELETE FROM {}", "UPDATE {} SET at = 0"):
        for name in LOGS[:4]:
            with pytest.raises(Exception, match="is a log"), store.writing() as connection:
                connection.execute(verb.format(name))


def test_a_page_of_before_is_refused_and_another_program_goes_on(store):
    learn(store)
    other = Store(store.file)
    (head,) = [row[-1] for row in table(other, "states") if row[1] == "a"]
    erase_progress(store)
    with pytest.raises(Conflict, match="undone elsewhere"):
        review(other, "a", 3, NOON + HOUR, expects=head)
    assert review(other, "a", 3, NOON + HOUR).state.reviews == 1
    other.close()


def test_a_file_that_cannot_be_erased_keeps_everything(store, monkeypatch):
    learn(store)
    before = export_progress(store, clock=NOON)
    monkeypatch.setattr(
        "headwise.study.progress.schema.guards", lambda: ["INSERT INTO nowhere VALUES (1)"]
    )  # fails after everything was deleted
    with pytest.raises(Exception, match="nowhere"):
        erase_progress(store)
    monkeypatch.undo()
    assert export_progress(store, clock=NOON) == before
