"""The log of reviews: it only grows, each entry counts once, and states are what it amounts to."""

import sqlite3

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from logbook import DAY, GUIDE, HOUR, NOON, new_id, review, table

from headwise.study.progress import Conflict, Refused, Review, Store, add_review, fold, undo_review
from headwise.study.progress.store import rebuild


def test_the_same_review_sent_twice_counts_once(store):
    id = new_id()
    first = review(store, "a", 3, NOON, id=id, expects=None)
    again = review(store, "a", 3, NOON + HOUR, id=id, expects=None)
    assert (first.repeated, again.repeated) == (False, True)
    assert again.state == first.state
    assert len(table(store, "reviews")) == 1


def test_an_id_that_belongs_to_another_review_is_refused(store):
    id = new_id()
    review(store, "a", 3, NOON, id=id)
    for card, rating in (("b", 3), ("a", 4)):
        with pytest.raises(Refused, match="belongs to another review"):
            review(store, card, rating, NOON + 1, id=id)
    assert len(table(store, "reviews")) == 1


def test_two_tabs_that_show_the_same_card_count_it_once(store):
    review(store, "a", 3, NOON, expects=None)
    with pytest.raises(Conflict, match="already reviewed elsewhere"):
        review(store, "a", 1, NOON + 5000, expects=None)
    assert [row[5] for row in table(store, "reviews")] == [3]


def test_an_undo_in_the_other_tab_is_noticed(store):
    first = new_id()
    review(store, "a", 3, NOON, id=first)
    undo_review(store, id=new_id(), undoes=first, clock=NOON + 1)
    with pytest.raises(Conflict, match="undone elsewhere"):
        review(store, "a", 3, NOON + 2, expects=first)


def test_an_undo_brings_back_the_state_before(store):
    before = review(store, "a", 3, NOON).state
    last = new_id()
    review(store, "a", 1, NOON + DAY, id=last)
    undone = undo_review(store, id=new_id(), undoes=last, clock=NOON + DAY + 1)
    assert undone.state == before
    assert len(table(store, "reviews")) == 2  # the log forgets nothing
    with pytest.raises(Conflict, match="undone already"):
        undo_review(store, id=new_id(), undoes=last, clock=NOON + DAY + 2)


def test_the_first_review_undone_makes_a_card_new(store):
    first = new_id()
    review(store, "a", 3, NOON, id=first)
    assert undo_review(store, id=new_id(), undoes=first, clock=NOON + 1).state is None
    assert table(store, "states") == []


def test_an_undo_sent_twice_is_one(store):
    first, undo = new_id(), new_id()
    review(store, "a", 3, NOON, id=first)
    undo_review(store, id=undo, undoes=first, clock=NOON + 1)
    assert undo_review(store, id=undo, undoes=first, clock=NOON + 2).repeated
    assert len(table(store, "undos")) == 1


def test_only_the_last_review_of_a_card_can_be_undone(store):
    first = new_id()
    review(store, "a", 3, NOON, id=first)
    review(store, "a", 3, NOON + DAY)
    with pytest.raises(Conflict, match="undo that review first"):
        undo_review(store, id=new_id(), undoes=first, clock=NOON + DAY + 1)
    with pytest.raises(Refused, match="there is no review"):
        undo_review(store, id=new_id(), undoes="never-there", clock=NOON)


def test_a_clock_that_is_set_back_loses_nothing_and_never_plans_into_the_past(store):
    review(store, "a", 3, NOON)
    found = review(store, "a", 3, NOON - 400 * DAY)
    assert found.state.last == NOON + 1
    assert found.state.due > NOON
    assert "was the clock set back?" in found.told
    (_, row) = table(store, "reviews")
    assert row[6:8] == (NOON + 1, NOON - 400 * DAY)  # what it counts from, and what the clock said
    assert review(store, "b", 3, NOON - 400 * DAY).state.last == NOON - 400 * DAY  # other cards are free


@pytest.mark.parametrize("table_name", ["reviews", "undos", "answers", "marks"])
def test_the_database_itself_keeps_the_log(store, table_name):
    first = new_id()
    review(store, "a", 3, NOON, id=first)
    with store.writing() as connection:
        connection.execute("INSERT INTO undos (id, undoes, at) VALUES ('an-undo-1', ?, 0)", (first,))
        connection.execute(
            "INSERT INTO marks (id, guide, activity, done, at) VALUES ('a-mark-01','g','a',1,0)"
        )
        connection.execute(
            "INSERT INTO answers (id, guide, question, rev, version, given, correct, score, seed, at) "
            "VALUES ('answer-01', 'g', 'q', 1, 'current', '\"\"', 1, 1, 0, 0)"
        )
    other = sqlite3.connect(store.file)
    for change in (f"DELETE FROM {table_name}", f"UPDATE {table_name} SET id = 'x'"):
        with pytest.raises(sqlite3.IntegrityError, match="rows are added, never changed"):
            other.execute(change)
    other.close()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": "short"}, "8 to 64"),
        ({"id": "with space"}, "8 to 64"),
        ({"id": None}, "8 to 64"),
        ({"guide": ""}, "guide ''"),
        ({"card": "a/b"}, "card 'a/b'"),
        ({"card": 7}, "card 7"),
        ({"rev": 0}, "rev 0"),
        ({"rating": 0}, "from 1 to 4"),
        ({"rating": 5}, "from 1 to 4"),
        ({"rating": 3.0}, "from 1 to 4"),
        ({"rating": True}, "from 1 to 4"),
        ({"rating": "3"}, "from 1 to 4"),
        ({"expects": 5}, "8 to 64"),
        ({"duration": -1}, "duration -1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(store, changes, says):
    entry = {"id": new_id(), "guide": GUIDE, "card": "a", "rev": 1, "rating": 3, "expects": None}
    with pytest.raises(Refused, match=says):
        add_review(store, **{**entry, "clock": NOON, **changes})
    assert table(store, "reviews") == []


class Log(RuleBasedStateMachine):
    """Reviews, undos, repeats and clocks that jump, in two programs on one file: the states are always the
    fold of the reviews that count, and every acknowledged review is there once."""

    @initialize()
    def open(self):
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        self.stores = [Store(Path(self.folder.name) / "p.sqlite3") for _ in range(2)]
        self.at = NOON
        self.kept, self.undone, self.heads = [], set(), {}

    cards, programs = st.sampled_from("abc"), st.integers(0, 1)

    @rule(card=cards, rating=st.integers(1, 4), program=programs, jump=st.integers(-3 * DAY, 20 * DAY))
    def review(self, card, rating, program, jump):
        self.at += jump
        id = new_id()
        found = review(
            self.stores[program], card, rating, self.at, id=id, expects=self.heads.get(card, [None])[-1]
        )
        assert found.state.head == id
        self.kept.append((id, card, rating))
        self.heads.setdefault(card, [None]).append(id)

    @rule(card=cards, program=programs)
    def stale(self, card, program):
        if len(self.heads.get(card, [])) > 1:
            with pytest.raises(Conflict):
                review(self.stores[program], card, 3, self.at, expects=self.heads[card][-2])

    @rule(card=cards, program=programs)
    def undo(self, card, program):
        if len(self.heads.get(card, [])) > 1:
            last = self.heads[card].pop()
            found = undo_review(self.stores[program], id=new_id(), undoes=last, clock=self.at)
            assert (found.state.head if found.state else None) == self.heads[card][-1]
            self.undone.add(last)

    @rule(program=programs, data=st.data())
    def repeat(self, program, data):
        live = [entry for entry in self.kept if entry[0] not in self.undone]
        if live:
            id, card, rating = data.draw(st.sampled_from(live))
            assert review(self.stores[program], card, rating, self.at, id=id).repeated

    @invariant()
    def adds_up(self):
        if not hasattr(self, "stores"):
            return
        store = self.stores[0]
        rows = table(store, "reviews")
        assert sorted((row[1], row[3], row[5]) for row in rows) == sorted(self.kept)
        states = {row[1]: row[2:] for row in table(store, "states")}
        for card in "abc":
            entries = [
                Review(row[1], row[6], row[5], row[4])
                for row in sorted(rows, key=lambda row: (row[6], row[1]))
                if row[3] == card and row[1] not in self.undone
            ]
            state = fold(entries)
            assert states.get(card) == (tuple(state.to_dict().values()) if state else None)

    def teardown(self):
        if not hasattr(self, "stores"):
            return
        before = table(self.stores[0], "states")
        with self.stores[1].writing() as connection:
            rebuild(connection)
        assert table(self.stores[0], "states") == before
        for store in self.stores:
            store.close()
        self.folder.cleanup()


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
