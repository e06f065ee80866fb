"""A kill, a full disk, a broken file, a file that is gone, several programs at once: no review is lost or
counted twice, and the learner is told."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from logbook import NOON, deck, due, new_id, review, table

from headwise.study.progress import Conflict, Damaged, NotSaved, Store, progress_file
from headwise.study.progress.store import rebuild

HERE = Path(__file__).parent


def ids(store):
    return [row[1] for row in table(store, "reviews")]


@pytest.mark.parametrize("kept", [1, 7, 40])
def test_a_kill_in_the_middle_of_a_write_loses_nothing_that_was_confirmed(tmp_path, kept):
    file = tmp_path / "p.sqlite3"
    command = [sys.executable, str(HERE / "killed_reviewer.py"), str(file), str(NOON), "kill"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        confirmed = [program.stdout.readline().strip() for _ in range(kept)]
        program.send_signal(signal.SIGKILL)
        confirmed += program.stdout.read().split()
    assert program.returncode == -signal.SIGKILL
    store = Store(file)
    found = ids(store)
    assert found[: len(confirmed)] == confirmed
    assert len(set(found)) == len(found) <= len(confirmed) + 1  # one more may have been kept, unconfirmed
    with store.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    before = table(store, "states")
    with store.writing() as connection:
        rebuild(connection)
    assert table(store, "states") == before
    # The page sends again what was not confirmed; it counts once.
    last = table(store, "reviews")[-1]
    assert review(store, last[3], last[5], NOON, id=last[1], expects=None).repeated
    store.close()


def test_a_write_ahead_log_that_was_cut_off_costs_no_more_than_its_end(tmp_path):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    for number in range(5):
        review(store, f"card-{number}", 3, NOON + number)
    torn = tmp_path / "torn.sqlite3"
    torn.write_bytes(file.read_bytes())
    log = Path(f"{file}-wal").read_bytes()
    Path(f"{torn}-wal").write_bytes(log[:-100])
    store.close()
    again = Store(torn)
    assert len(ids(again)) == 4
    assert len(table(again, "states")) == 4
    again.close()


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits on files' sizes")
def test_a_full_disk_is_told_and_keeps_what_was_there(tmp_path):
    file = tmp_path / "p.sqlite3"
    command = [sys.executable, str(HERE / "full_disk.py"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    told, counts = done.stdout.splitlines()
    assert "nothing was saved" in told
    assert str(file) in told
    kept, found = map(int, counts.split())
    assert kept == found > 10
    store = Store(file)  # with room again
    assert len(ids(store)) == kept
    assert not review(store, "a", 3, NOON + 10**9).repeated
    store.close()


def test_a_database_that_may_not_grow_says_that_the_disk_is_full(store):
    review(store, "a", 3, NOON)
    with store.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    kept = 1
    with pytest.raises(NotSaved, match="The disk is full, so nothing was saved"):  # noqa: PT012
        for number in range(2000):
            review(store, f"card-{number}", 3, NOON + number)
            kept += 1
    assert len(ids(store)) == kept == len(table(store, "states"))
    with store.reading() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    assert review(store, "one-more", 3, NOON + 10**7).state.reviews == 1


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be taken for one" * 30, b"SQLite format 3\0"]
)
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path, content):
    file = tmp_path / "p.sqlite3"
    file.write_bytes(content)
    with pytest.raises(Damaged, match=r"It was left as it is"):
        Store(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("copies", "way_out"),
    [
        (True, r"put the latest copy in its place under its name: .*backups.p\.\d{4}-\d\d-\d\d\.sqlite3"),
        (False, "if you have exported your progress, import that file"),
    ],
)
def test_a_page_that_was_overwritten_is_told(tmp_path, copies, way_out):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    for number in range(200):
        review(store, f"card-{number}", 3, NOON + number)
    store.close()
    content = bytearray(file.read_bytes())
    for place in range(4096, len(content), 4096):
        content[place : place + 64] = b"\xff" * 64
    file.write_bytes(content)
    if not copies:
        shutil.rmtree(tmp_path / "backups")
    with pytest.raises(Damaged, match=way_out):
        table(Store(file), "reviews")


def test_another_programs_database_is_left_as_it_is(tmp_path):
    file = tmp_path / "p.sqlite3"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE theirs (a)")
    other.commit()
    other.close()
    before = file.read_bytes()
    with pytest.raises(Damaged, match="another program"):
        Store(file)
    assert file.read_bytes() == before


def test_a_newer_format_is_left_as_it_is(tmp_path):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    with store.writing() as connection:
        connection.execute("PRAGMA user_version = 2")
    store.close()
    with pytest.raises(Damaged, match="newer headwise"):
        Store(file)


def test_a_file_that_is_moved_away_takes_no_reviews_with_it(tmp_path):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    review(store, "a", 3, NOON)
    file.rename(tmp_path / "moved.sqlite3")
    with pytest.raises(NotSaved, match="was moved or deleted"):
        review(store, "b", 3, NOON, expects=None)
    (tmp_path / "moved.sqlite3").rename(file)
    review(store, "b", 3, NOON)
    assert len(ids(store)) == 2
    store.close()


def test_a_backup_that_is_put_in_its_place_is_used(tmp_path):
    backup = Store(tmp_path / "backup.sqlite3")
    for card in "abc":
        review(backup, card, 3, NOON)
    backup.close()
    store = Store(tmp_path / "p.sqlite3")
    for card in "wxyz":
        review(store, card, 3, NOON)
    (tmp_path / "p.sqlite3").rename(tmp_path / "before.sqlite3")
    os.replace(tmp_path / "backup.sqlite3", tmp_path / "p.sqlite3")
    review(store, "d", 3, NOON)
    assert sorted(row[3] for row in table(store, "reviews")) == list("abcd")
    with store.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()
    before = Store(tmp_path / "before.sqlite3")
    assert sorted(row[3] for row in table(before, "reviews")) == list("wxyz")
    before.close()


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write anywhere")
def test_a_file_that_may_not_be_written_is_told(tmp_path):
    file = tmp_path / "p.sqlite3"
    Store(file).close()
    file.chmod(0o400)
    with pytest.raises(NotSaved, match="may not be written"):
        Store(file)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotSaved, match="nothing was saved"):
        Store(tmp_path / "file" / "p.sqlite3")


def test_programs_make_the_same_new_file(tmp_path):
    errors = []

    def begin(file):
        try:
            Store(file).close()
        except Exception as error:
            errors.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for attempt in range(40):
            file = tmp_path / str(attempt) / "p.sqlite3"
            threads = [threading.Thread(target=begin, args=(file,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert errors == []


def test_programs_that_write_at_once_all_count(tmp_path):
    file = tmp_path / "p.sqlite3"
    Store(file).close()
    confirmed, conflicts = [], []

    def work(name):
        store = Store(file)
        for number in range(20):
            card = f"card-{number % 3}"
            id = new_id()
            try:
                review(store, card, 3, NOON + number, id=id)
                confirmed.append(id)
            except Conflict:
                conflicts.append(id)
        store.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = Store(file)
    assert sorted(ids(store)) == sorted(confirmed)
    assert len(confirmed) + len(conflicts) == 80
    before = table(store, "states")
    with store.writing() as connection:
        rebuild(connection)
    assert table(store, "states") == before
    store.close()


def test_a_program_that_holds_the_file_too_long_is_told(store, monkeypatch):
    holder = sqlite3.connect(store.file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with store.reading() as connection:
        connection.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(NotSaved, match="Another program has held the file"):
        review(store, "a", 3, NOON, expects=None)
    assert due(store, deck("a"), NOON) == ["a"]  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    review(store, "a", 3, NOON)


def test_states_of_other_laws_are_computed_again(tmp_path):
    file = tmp_path / "p.sqlite3"
    store = Store(file)
    review(store, "a", 3, NOON)
    before = table(store, "states")
    with store.writing() as connection:
        connection.execute("UPDATE meta SET value = 'fsrs 0.0'")
        connection.execute("UPDATE states SET due = 5")
    store.close()
    again = Store(file)
    assert table(again, "states") == before
    again.close()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "con", "-a", "a" * 41, "a b", "é"])
def test_a_profile_is_a_plain_name(name):
    from headwise.study.progress import Refused

    with pytest.raises(Refused, match="profile"):
        progress_file(name)


# azavea/nyc-trees#1399
def test_profiles_do_not_mix(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWISE_STUDY_DATA", str(tmp_path / "data"))
    mine, yours = Store(progress_file("mine")), Store(progress_file("yours"))
    review(mine, "a", 3, NOON)
    assert ids(yours) == []
    assert due(yours, deck("a"), NOON) == ["a"]
    mine.close()
    yours.close()
