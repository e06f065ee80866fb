"""A copy of the file of progress is kept for each of the last days, and named where the file is damaged."""

import sqlite3

import pytest
from logbook import DAY, NOON, new_id, review, table

from headwise.study.progress import Damaged, Store, days, erase_progress
from headwise.study.progress.backups import backups


@pytest.fixture
def today(monkeypatch):
    """Sets the day: this machine's clock is at NOON and some days."""

    def at(day):
        monkeypatch.setattr(days, "now", lambda: NOON + day * DAY)

    at(0)
    return at


def cards(file):
    """The cards that were reviewed, in a copy."""
    connection = sqlite3.connect(file)
    try:
        return [row[0] for row in connection.execute("SELECT card FROM reviews ORDER BY seq")]
    finally:
        connection.close()


def test_a_day_begins_with_a_copy_and_the_last_three_are_kept(store, today):
    review(store, "a", 3, NOON)
    assert backups(store.file) == []  # there was nothing yet
    review(store, "b", 3, NOON)
    (first,) = backups(store.file)
    assert (first.name, cards(first)) == ("progress.2026-11-30.sqlite3", ["a"])
    for day, card in ((1, "c"), (1, "d"), (3, "e"), (4, "f")):
        today(day)
        review(store, card, 3, NOON)
    assert [(copy.name[9:19], cards(copy)) for copy in backups(store.file)] == [
        ("2026-12-04", list("abcde")),
        ("2026-12-03", list("abcd")),
        ("2026-12-01", list("ab")),
    ]
    assert all(copy.stat().st_mode & 0o077 == 0 for copy in backups(store.file))
    assert sorted(path.name for path in first.parent.iterdir()) == sorted(
        copy.name for copy in backups(store.file)
    )


def test_a_clock_that_was_ahead_leaves_room_for_the_copies_of_now(store, today):
    review(store, "a", 3, NOON)
    for day in (4000, 4001, 4002, 0, 1):
        today(day)
        review(store, f"b{day}", 3, NOON)
    assert "progress.2026-12-01.sqlite3" in [copy.name for copy in backups(store.file)]
    assert len(backups(store.file)) == 3


def test_a_damaged_file_names_its_latest_copy_which_is_whole(tmp_path, today):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    for number in range(200):
        review(store, f"card-{number}", 3, NOON + number)
    today(1)
    review(store, "one-more", 3, NOON + DAY)
    store.close()
    content = bytearray(file.read_bytes())
    for place in range(4096, len(content), 4096):
        content[place : place + 64] = b"\xff" * 64
    file.write_bytes(content)
    copy = tmp_path / "backups" / "p.2026-12-01.sqlite3"
    with pytest.raises(Damaged, match="put the latest copy in its place") as error:
        table(Store(file), "reviews")
    assert str(copy) in str(error.value)
    file.unlink()
    copy.replace(file)
    again = Store(file)
    assert len(table(again, "states")) == 200
    again.close()


def test_a_damaged_file_takes_no_copys_place(tmp_path, today):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    for number in range(200):
        review(store, f"card-{number}", 3, NOON + number)
    store.flush()
    before = [(copy, copy.read_bytes()) for copy in backups(file)]
    content = bytearray(file.read_bytes())
    for place in range(8 * 4096, len(content), 4096):
        content[place : place + 64] = b"\xff" * 64
    file.write_bytes(content)
    store.close()
    today(1)
    with pytest.raises(Damaged):
        review(Store(file), "one-more", 3, NOON + DAY, expects=None)
    assert [(copy, copy.read_bytes()) for copy in backups(file)] == before


def test_a_copy_that_cannot_be_written_stops_no_review(store, today):
    review(store, "a", 3, NOON)
    (store.file.parent / "backups").write_text("in the way")
    assert not review(store, "b", 3, NOON).repeated
    assert backups(store.file) == []


def test_what_was_erased_is_in_no_copy(store, tmp_path, today):
    other = Store(tmp_path / "other.sqlite3")
    for one in (store, other):
        review(one, "a", 3, NOON)
        review(one, "b", 3, NOON)
    today(1)
    erase_progress(store)
    assert backups(store.file) == []
    assert len(backups(other.file)) == 1
    other.close()


def test_another_version_that_wrote_in_the_meantime_is_noticed_within_the_next_change(store):
    review(store, "a", 3, NOON)
    before = table(store, "states")
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("UPDATE meta SET value = 'fsrs 0.0' WHERE name = 'laws'")
    other.execute("UPDATE states SET due = 5")
    review(store, "b", 3, NOON)
    assert [row for row in table(store, "states") if row[1] == "a"] == before
    other.execute("PRAGMA user_version = 99")
    with pytest.raises(Damaged, match="newer headwise"):
        review(store, "c", 3, NOON, id=new_id())
    other.execute("PRAGMA user_version = 1")
    other.close()
    assert [row[1] for row in table(store, "states")] == ["a", "b"]


def test_one_look_sees_one_state_however_many_looks_are_in_it(store):
    review(store, "a", 3, NOON)
    writer = Store(store.file)
    with store.reading():
        assert len(table(store, "reviews")) == 1
        review(writer, "b", 3, NOON)
        assert len(table(store, "reviews")) == 1
    assert len(table(store, "reviews")) == 2
    writer.close()


def test_what_is_confirmed_is_brought_to_the_drive(store):
    with store.reading() as connection:
        for pragma in ("fullfsync", "checkpoint_fullfsync"):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (1,)
