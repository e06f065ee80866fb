"""Pages are built into a cache, again when the guide changes, never half; old versions are graded as such."""

import os
import shutil
import threading
import time
from datetime import UTC, datetime

import pytest
from served import Served
from small_guide import QUIZ, small_guide, store_formulas, write_guide

from headwise.study.content import GuideError, load_guide
from headwise.study.progress import Store
from headwise.study.publishing import publish_guide
from headwise.study.server import pages
from headwise.study.server.build import build
from headwise.study.server.pages import Site


@pytest.fixture(autouse=True)
def always_look(monkeypatch):
    monkeypatch.setattr(pages, "LOOK_EVERY", 0.0)


def later(folder, file, text):
    """Write a file so that its time is another."""
    path = folder / file
    path.write_text(text, encoding="utf-8")


def site_of(folder, cache, builder=build):
    told = []
    return Site(folder, cache, builder, told.append), told


def page(site):
    return (site.look().pages / "second" / "index.html").read_text(encoding="utf-8")


def test_pages_are_built_once_and_taken_from_the_cache_after(guide, tmp_path):
    built = []

    def counting(folder, out):
        built.append(folder)
        return build(folder, out)

    first, _ = site_of(guide.folder, tmp_path / "cache", counting)
    again, _ = site_of(guide.folder, tmp_path / "cache", counting)
    assert first.shown() == again.shown()
    assert len(built) == 1
    assert not list((tmp_path / "cache").rglob(".building-*"))


def test_a_changed_guide_is_built_again_while_the_old_pages_are_served(guide, tmp_path):
    site, told = site_of(guide.folder, tmp_path / "cache")
    assert "Heads are joined" in page(site)
    text = (guide.folder / "activities" / "20-second.md").read_text()
    later(
        guide.folder,
        "activities/20-second.md",
        text.replace("Heads are joined", "Heads are laid side by side"),
    )
    site.look()
    site.wait()
    assert "Heads are laid side by side" in page(site)
    assert told == ["The guide has changed: its pages are built again."]


def test_a_guide_that_breaks_keeps_its_old_pages_and_the_error_is_told(guide, tmp_path):
    site, told = site_of(guide.folder, tmp_path / "cache")
    before = site.shown()
    later(guide.folder, "activities/14-first.quiz.toml", QUIZ.replace('kind = "single"', 'kind = "singel"'))
    site.look()
    site.wait()
    assert site.shown() == before
    assert "14-first.quiz.toml:" in told[0]
    assert "The pages stay as they were" in told[0]
    later(
        guide.folder, "activities/14-first.quiz.toml", QUIZ.replace("How many heads?", "How many are they?")
    )
    site.look()
    site.wait()
    assert site.shown() != before


def test_a_guide_that_was_broken_before_the_start_shows_its_last_whole_pages(guide, tmp_path):
    before = site_of(guide.folder, tmp_path / "cache")[0].shown()
    later(guide.folder, "guide.toml", "id = ")
    site, told = site_of(guide.folder, tmp_path / "cache")
    assert site.shown() == before
    assert "guide.toml:1: this is not TOML" in told[0]


def test_a_broken_guide_that_was_never_built_is_refused(guide, tmp_path):
    later(guide.folder, "guide.toml", "id = ")
    with pytest.raises(GuideError, match=r"guide\.toml:1"):
        site_of(guide.folder, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_pages_that_nobody_used_leave_the_cache(guide, tmp_path, monkeypatch):
    site, _ = site_of(guide.folder, tmp_path / "cache")
    old = site.shown().pages.parent
    monkeypatch.setattr(pages, "OLD", -1.0)
    text = (guide.folder / "activities" / "20-second.md").read_text()
    later(guide.folder, "activities/20-second.md", text.replace("joined", "joint"))
    fresh, _ = site_of(guide.folder, tmp_path / "cache")
    assert fresh.shown().pages.is_dir()
    assert not old.exists()


def aged(folder):
    """As if nobody had used it for two days."""
    long_ago = time.time() - 2 * pages.OLD
    os.utime(folder, (long_ago, long_ago))


def test_pages_that_are_being_served_stay_when_another_server_tidies(guide, tmp_path):
    site, _ = site_of(guide.folder, tmp_path / "cache")
    home = site.shown().pages.parent
    aged(home)
    site.look()  # somebody reads a page
    text = (guide.folder / "activities" / "20-second.md").read_text()
    later(guide.folder, "activities/20-second.md", text.replace("joined", "joint"))
    other, _ = site_of(guide.folder, tmp_path / "cache")
    assert other.shown().pages.parent != home
    assert (home / "pages" / "second" / "index.html").is_file()


def test_pages_that_are_gone_are_built_again(guide, tmp_path):
    site, told = site_of(guide.folder, tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    assert "Heads are joined" in page(site)
    assert told == ["The pages were gone from the cache: they are built again."]


def test_gone_pages_of_a_broken_guide_come_back_when_it_is_mended(guide, tmp_path):
    site, told = site_of(guide.folder, tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    later(guide.folder, "activities/14-first.quiz.toml", QUIZ.replace('kind = "single"', 'kind = "singel"'))
    for _ in range(3):
        site.look()
    assert len(told) == 1
    assert "14-first.quiz.toml:" in told[0]
    later(guide.folder, "activities/14-first.quiz.toml", QUIZ)
    assert "Heads are joined" in page(site)


@pytest.mark.parametrize("held", ["", "{", "[]", '{"id": "small"}', "\udcff"])
def test_pages_whose_record_can_t_be_read_are_built_again(guide, tmp_path, held, monkeypatch):
    monkeypatch.setattr(pages, "stamp", lambda folder: "same")
    first, _ = site_of(guide.folder, tmp_path / "cache")
    home = first.shown().pages.parent
    (home / "guide.json").write_bytes(held.encode(errors="surrogateescape"))
    again, _ = site_of(guide.folder, tmp_path / "cache")
    assert again.shown() == first.shown()
    assert pages.read(home) == first.shown()
    assert [path.name for path in home.parent.iterdir()] == [home.name]


def test_unreadable_pages_are_not_shown_in_place_of_a_broken_guide(guide, tmp_path):
    home = site_of(guide.folder, tmp_path / "cache")[0].shown().pages.parent
    (home / "guide.json").write_text("{")
    later(guide.folder, "guide.toml", "id = ")
    with pytest.raises(GuideError, match=r"guide\.toml:1"):
        site_of(guide.folder, tmp_path / "cache")


def test_a_frozen_version_is_graded_by_its_own_key_and_answers_carry_over(tmp_path):
    folder = tmp_path / "small"
    publish_guide(small_guide(folder), "The first", datetime(2026, 11, 30, tzinfo=UTC))
    changed = QUIZ.replace("answer = 86753", "answer = 97\nrev = 2").replace(
        '"SECRETWORD"', '"other", "SECRETWORD"'
    )
    write_guide(folder, quiz=changed)
    store_formulas(folder)
    publish_guide(load_guide(folder), "The second", datetime(2026, 12, 1, tzinfo=UTC))
    server = Served(folder, tmp_path)
    try:

        def answer(number, question, given, version, rev):
            body = {"id": f"answer-{number:04d}", "version": version, "rev": rev, "given": given, "seed": 1}
            return server.post(f"/api/quiz/{question}/answer", body)

        assert answer(1, "how-many", "86753", "1", 1)[2]["result"]["correct"] is True
        assert answer(2, "how-many", "97", "current", 2)[2]["result"]["correct"] is True
        assert answer(3, "how-many", "97", "1", 2)[0] == 409
        assert answer(4, "what-name", "other", "1", 1)[2]["result"]["correct"] is False
        assert answer(5, "what-name", "other", "2", 1)[2]["result"]["correct"] is True
        kept = server.get("/api/progress")[2]["answers"]
        assert set(kept["how-many"]) == {"1", "2"}
        assert kept["what-name"]["1"]["attempts"] == 2
        frozen = server.get("/g/small/v/1/first-quiz/")[2]
        assert "data-mode" not in frozen  # it loads the scripts of the current site, which know
        assert 'src="../../../static/mode.js"' in frozen
        assert '"server"' in server.get("/g/small/static/mode.js")[2]
        assert server.get("/g/small/v/1/static/mode.js")[0] == 404
        assert 'data-version="1"' in frozen
        assert server.get("/g/small/v/1/answers.json")[0] == 404
        assert server.get("/g/small/v/1/answers/")[0] == 404
        assert server.get("/g/small/v/3/")[0] == 404
    finally:
        server.close()


def count(monkeypatch, name):
    calls, real = [], getattr(pages, name)
    monkeypatch.setattr(pages, name, lambda *given: calls.append(given) or real(*given))
    return calls


def test_a_change_is_looked_for_once_a_second_at_most(guide, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "LOOK_EVERY", 60.0)
    site, _ = site_of(guide.folder, tmp_path / "cache")
    looks = count(monkeypatch, "glance")
    for _ in range(50):
        site.look()
    assert looks == []


def test_the_guide_is_looked_at_only_for_pages(server, monkeypatch):
    looks, contents = count(monkeypatch, "glance"), count(monkeypatch, "stamp")
    for path in ("static/guide.css", "static/quiz.js", "visuals/first-mask.json", "search.json"):
        assert server.get(f"/g/small/{path}")[0] == 200
    for path in ("/api/progress", "/api/queue?deck=deck"):
        assert server.get(path)[0] == 200
    assert looks == []
    for path in ("", "first/", "first/index.html", "first"):
        assert server.get(f"/g/small/{path}")[0] in (200, 308)
    assert len(looks) == 4
    assert contents == []  # no file has another time or size


def test_while_one_looks_at_the_guide_others_get_their_answers(guide, tmp_path, monkeypatch):
    site, _ = site_of(guide.folder, tmp_path / "cache")
    looking, go_on, real = threading.Event(), threading.Event(), pages.glance

    def slow(folder):
        looking.set()
        assert go_on.wait(60)
        return real(folder)

    monkeypatch.setattr(pages, "glance", slow)
    reader = threading.Thread(target=site.look)
    reader.start()
    assert looking.wait(60)
    assert site.shown().id == "small"  # it would wait for ever behind a lock
    go_on.set()
    reader.join(60)
    assert not reader.is_alive()


def test_the_key_of_pages_is_what_they_are_made_of(guide, monkeypatch, tmp_path):
    first = pages.stamp(guide.folder)
    os.utime(guide.folder / "guide.toml", (1, 1))
    assert pages.stamp(guide.folder) == first  # another time alone is no change
    copy = shutil.copytree(guide.folder, tmp_path / "elsewhere")
    assert pages.stamp(copy) == first
    text = (copy / "guide.toml").read_text()
    (copy / "guide.toml").write_text(text.replace("everything", "anything"))
    assert len({pages.stamp(copy), first}) == 2
    (copy / "guide.toml").write_text(text)
    (copy / "guide.toml").rename(copy / "other.toml")
    assert pages.stamp(copy) != first
    monkeypatch.setattr(pages, "library", lambda: "another torch")
    assert pages.stamp(guide.folder) != first


@pytest.mark.parametrize("file", ["attention.py", "masks/causal.py", "study/static/guide.css"])
def test_pages_go_stale_with_any_file_of_the_library(tmp_path, monkeypatch, file):
    """Outputs and numbers come from all of headwise, not from its study room alone."""
    package = tmp_path / "headwise"
    for name in ("__init__.py", "attention.py", "masks/causal.py", "study/static/guide.css"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("1")
    monkeypatch.setattr(pages.headwise, "__file__", str(package / "__init__.py"))
    now = pages.library.__wrapped__
    first = now()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "attention.pyc").write_text("compiled")
    assert now() == first
    (package / file).write_text("2")
    assert now() != first


@pytest.mark.parametrize("name", ["torch", "fsrs"])
def test_pages_go_stale_with_another_version_of_what_computes(monkeypatch, name):
    real = pages.metadata.version
    first = pages.library.__wrapped__()
    monkeypatch.setattr(pages.metadata, "version", lambda one: "0.0.1" if one == name else real(one))
    assert pages.library.__wrapped__() != first


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_other_accounts_can_not_read_keys_and_progress(guide, tmp_path):
    old = os.umask(0o022)
    try:
        site, _ = site_of(guide.folder, tmp_path / "cache")
        Store(tmp_path / "data" / "progress.sqlite3").close()
        (tmp_path / "data" / "older.sqlite3").touch(0o644)
        Store(tmp_path / "data" / "older.sqlite3").close()
    finally:
        os.umask(old)
    home = site.shown().pages.parent
    assert [path.stat().st_mode & 0o777 for path in (home, home.parent)] == [0o700, 0o700]
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    files = sorted((tmp_path / "data").iterdir())
    assert {path.name: path.stat().st_mode & 0o777 for path in files} == {
        "older.sqlite3": 0o600,
        "progress.sqlite3": 0o600,
    }
