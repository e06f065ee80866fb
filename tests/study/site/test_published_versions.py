"""Versions: frozen, checked, never altered, readable byte for byte."""

import hashlib
import json
import re
from datetime import UTC, datetime

import pytest
from small_guide import FIRST, store_formulas, write_guide
from typer.testing import CliRunner

from headwise.study import publishing, seal, versions
from headwise.study.check import Fault, check_guide
from headwise.study.content import load_guide
from headwise.study.errors import GuideError
from headwise.study.publishing import publish_guide
from headwise.study.render.pages import Version
from headwise.study.site import BuildError, build_site, render_content, render_site, write

DAY = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)


@pytest.fixture
def twice(guide):
    """A guide with two versions; the second has another first lesson and lacks a block."""
    publish_guide(guide, "The first one", DAY)
    write_guide(
        guide.folder, first=FIRST.replace("Four linears", "Four projections").replace("#simple", "#simpler")
    )
    store_formulas(guide.folder)
    changed = load_guide(guide.folder)
    publish_guide(changed, "Other  words\nin a title", DAY.replace(month=12, day=1))
    return changed


def test_versions_are_numbered_dated_and_noted(twice):
    assert versions.published(twice.folder) == [
        Version(1, "2026-11-30T09:30:00Z", "The first one"),
        Version(2, "2026-12-01T09:30:00Z", "Other words in a title"),
    ]


def test_an_old_version_is_served_as_it_was(guide, tmp_path):
    publish_guide(guide, "One", DAY)
    frozen = versions.files(guide.folder, 1)
    write_guide(guide.folder, first=FIRST.replace("Four linears", "Four projections"))
    changed = load_guide(guide.folder)
    publish_guide(changed, "Two", DAY)
    assert versions.files(guide.folder, 1) == frozen
    out = tmp_path / "site"
    build_site(changed, out)
    for name, content in frozen.items():
        assert (out / "v" / "1" / name).read_bytes() == content
    assert b"Four linears" in frozen["first/index.html"]
    assert b"Four projections" in (out / "v" / "2" / "first" / "index.html").read_bytes()


def test_a_frozen_page_says_so_and_leads_to_the_current_one(twice):
    page = versions.read(twice.folder, 1, "first/index.html").decode()
    assert "<strong>Version 1</strong>, frozen on <time" in page
    assert 'datetime="2026-11-30T09:30:00Z">2026-11-30</time>' in page
    assert '<link rel="canonical" href="../../../first/">' in page
    assert 'data-version="1"' in page
    front = versions.read(twice.folder, 1, "index.html").decode()
    assert '<link rel="canonical" href="../../">' in front
    assert 'href="../../versions/"' in front


def test_a_permanent_link_leads_to_the_newest_version_that_has_the_block(twice):
    page = render_site(twice, "static")["first/index.html"].decode()
    assert 'class="permalink" href="../v/2/first/#ours"' in page
    write_guide(twice.folder, first=FIRST.replace("#ours", "#brand-new"))
    page = render_site(load_guide(twice.folder), "static")["first/index.html"].decode()
    assert 'class="permalink" href="#brand-new"' in page
    frozen = versions.read(twice.folder, 1, "first/index.html").decode()
    assert 'class="permalink" href="#ours"' in frozen


def test_what_didn_t_change_is_stored_once(twice):
    stored = [path for path in (twice.folder / "versions" / "files").rglob("*") if path.is_file()]
    named = [key for number in (1, 2) for key in versions.manifest(twice.folder, number).files.values()]
    assert len(stored) == len(set(named)) < len(named)


def test_a_version_is_never_altered(twice):
    before = (twice.folder / "versions" / "2.json").read_bytes()
    with pytest.raises(GuideError, match="version 2 exists"):
        versions.publish(twice, {"index.html": b"other"}, Version(2, "2027-01-01T00:00:00Z", "again"))
    with pytest.raises(GuideError, match="the next version is 3, not 5"):
        versions.publish(twice, {"index.html": b"other"}, Version(5, "2027-01-01T00:00:00Z", "again"))
    assert (twice.folder / "versions" / "2.json").read_bytes() == before


def test_two_that_publish_at_once_don_t_overwrite_each_other(twice, monkeypatch):
    publish_guide(twice, "Three", DAY)
    monkeypatch.setattr(versions, "numbers", lambda folder: [1, 2])  # what the slower one saw a moment ago
    with pytest.raises(GuideError, match="never altered"):
        publish_guide(twice, "Another three", DAY)
    monkeypatch.undo()
    assert versions.manifest(twice.folder, 3).note == "Three"


def test_check_finds_what_was_changed_lost_or_left_over(twice):
    assert versions.check(twice.folder) == []
    manifest = versions.manifest(twice.folder, 1)
    page = versions._path(twice.folder, manifest.files["first/index.html"])
    kept = page.read_bytes()
    page.write_bytes(kept + b" ")
    assert [error.message.split(":")[0] for error in versions.check(twice.folder)] == [
        "first/index.html of version 1 was altered"
    ]
    with pytest.raises(GuideError, match="was altered"):
        versions.read(twice.folder, 1, "first/index.html")
    with pytest.raises(GuideError, match="was altered"):
        publish_guide(twice, "Three", DAY)
    page.unlink()
    assert "missing" in versions.check(twice.folder)[0].message
    page.write_bytes(kept)
    (twice.folder / "versions" / "files" / "stray").write_text("x")
    assert versions.check(twice.folder) == []
    assert versions.orphans(twice.folder) == [twice.folder / "versions" / "files" / "stray"]
    (twice.folder / "versions" / "1.json").rename(twice.folder / "versions" / "3.json")
    assert any("version 1 is missing" in error.message for error in versions.check(twice.folder))
    assert any("its name is changed" in error.message for error in versions.check(twice.folder))


def messages(folder):
    return [error.message for error in versions.check(folder)]


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_each_manifest_holds_the_hash_of_the_one_before(twice):
    home = twice.folder / "versions"
    hashes = [hashlib.sha256((home / f"{number}.json").read_bytes()).hexdigest() for number in (1, 2)]
    assert [versions.manifest(twice.folder, number).previous for number in (1, 2)] == ["", hashes[0]]
    assert (home / "newest.sha256").read_text() == f"{hashes[1]}  2.json\n"


@pytest.mark.parametrize("number", [1, 2])
def test_a_rewritten_manifest_is_found_and_nothing_is_published_after_it(twice, number):
    rewrite(twice.folder / "versions" / f"{number}.json", note="It was always so", published="2020-01-01")
    (message,) = messages(twice.folder)
    assert "altered" in message
    with pytest.raises(GuideError, match="altered"):
        publish_guide(twice, "Three", DAY)
    assert versions.numbers(twice.folder) == [1, 2]


def test_a_number_is_not_used_twice(twice):
    (twice.folder / "versions" / "2.json").unlink()
    assert any("version 2 was published and is missing" in message for message in messages(twice.folder))
    with pytest.raises(GuideError, match="version 2 was published and is missing"):
        publish_guide(twice, "Another two", DAY)
    (twice.folder / "versions" / "1.json").unlink()
    with pytest.raises(GuideError, match="version 2 was published and is missing"):
        publish_guide(twice, "Another one", DAY)


def test_a_version_whose_publishing_was_killed_at_the_end_can_be_kept(twice):
    home = twice.folder / "versions"
    before = (home / "newest.sha256").read_bytes()
    publish_guide(twice, "Three", DAY)
    (home / "newest.sha256").write_bytes(before)
    (message,) = messages(twice.folder)
    assert "sha256sum 3.json > newest.sha256" in message
    digest = hashlib.sha256((home / "3.json").read_bytes()).hexdigest()
    (home / "newest.sha256").write_text(f"{digest}  3.json\n")
    assert messages(twice.folder) == []


def stored(folder):
    return {path.name for path in (folder / "versions" / "files").rglob("*") if path.is_file()}


def owned(folder):
    return {key for n in versions.numbers(folder) for key in versions.manifest(folder, n).files.values()}


def test_files_that_no_version_owns_are_told_and_taken_away_by_the_next_version(twice):
    home = twice.folder / "versions"
    (home / "files" / "zz").mkdir()
    (home / "files" / "zz" / "stray").write_text("x")
    (home / ".3.json.new-99999").write_text("{")
    (warning,) = [fault for fault in check_guide(twice.folder, run=False) if "no version" in str(fault)]
    assert warning.warning
    assert "2 files belong to no version" in str(warning)
    assert publish_guide(twice, "Three", DAY).number == 3
    assert versions.orphans(twice.folder) == []
    assert not (home / "files" / "zz").exists()
    assert stored(twice.folder) == owned(twice.folder)
    assert versions.check(twice.folder) == []


@pytest.mark.parametrize("failing", ["content", "manifest", "seal", "after the seal"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_publishing_that_fails_stops_no_later_one(guide, monkeypatch, failing, error):
    """A full disk or Ctrl-C, at any of the files."""
    publish_guide(guide, "One", DAY)
    write_guide(guide.folder, first=FIRST.replace("Four linears", "Four projections"))
    changed = load_guide(guide.folder)
    real, written = versions.replace_file, []

    def fails(path, content):
        written.append(path)
        if (failing == "content" and len(written) == 3) or (failing == "seal" and path.name == seal.NEWEST):
            raise error
        real(path, content)
        if failing == "after the seal" and path.name == seal.NEWEST:
            raise error  # the disk was asked to keep the folder's names

    def refuses(path, content):
        raise error

    monkeypatch.setattr(versions, "replace_file", fails)
    if failing == "manifest":
        monkeypatch.setattr(versions, "write_durably", refuses)
        monkeypatch.setattr(versions, "replace_file", without_durability)
    if isinstance(error, OSError):
        with pytest.raises(GuideError, match=r"version 2 isn't published: .*No space left") as caught:
            publish_guide(changed, "Two", DAY)
        assert "\n" not in str(caught.value)
    else:
        with pytest.raises(KeyboardInterrupt):
            publish_guide(changed, "Two", DAY)
    monkeypatch.undo()
    assert versions.numbers(guide.folder) == [1]
    assert versions.check(guide.folder) == []
    assert publish_guide(changed, "Two", DAY).number == 2
    assert stored(guide.folder) == owned(guide.folder)


def without_durability(path, content):
    path.write_bytes(content)


def test_a_file_left_behind_with_another_content_gets_into_no_version(twice):
    """Its name is a hash, its content is not that of it: a part of a file, after a power cut."""
    coming = render_content(twice, "static", version=Version(3, "2026-11-30T09:30:00Z", "Three"))
    key = hashlib.sha256(coming["index.html"]).hexdigest()
    path = versions._path(twice.folder, key)
    assert not path.exists()  # each version's front page names its number
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(coming["index.html"][:100])
    publish_guide(twice, "Three", DAY)
    assert versions.read(twice.folder, 3, "index.html") == coming["index.html"]
    assert versions.check(twice.folder) == []


def test_a_file_system_without_hard_links_will_do(twice, monkeypatch):
    def no_links(source, target):
        raise PermissionError(1, "Operation not permitted", str(target))

    monkeypatch.setattr(versions.os, "link", no_links)
    assert publish_guide(twice, "Three", DAY).number == 3
    assert versions.check(twice.folder) == []
    assert versions.orphans(twice.folder) == []
    monkeypatch.setattr(versions, "numbers", lambda folder: [1, 2])  # what a slower one saw a moment ago
    with pytest.raises(GuideError, match="never altered"):
        publish_guide(twice, "Another three", DAY)
    monkeypatch.undo()
    assert versions.manifest(twice.folder, 3).note == "Three"


def test_the_command_tells_a_refusing_disk_in_one_line(guide, monkeypatch):
    from headwise.cli.app import app

    monkeypatch.setattr(publishing, "check_guide", lambda folder: [])

    def refuses(path, content):
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(versions, "replace_file", refuses)
    result = CliRunner().invoke(app, ["study", "publish", str(guide.folder), "--note", "The first one"])
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert "Read-only file system" in result.output
    monkeypatch.setattr(publishing, "check_guide", lambda folder: refuses(folder / "guide.toml", b""))
    result = CliRunner().invoke(app, ["study", "publish", str(guide.folder), "--note", "The first one"])
    assert result.exit_code == 2
    assert "guide.toml: Read-only file system" in result.output.replace("\n", "")


def test_the_command_makes_no_second_version_of_the_same_guide(guide, monkeypatch):
    from headwise.cli.app import app

    monkeypatch.setattr(publishing, "check_guide", lambda folder: [])

    def publish(note):
        result = CliRunner().invoke(app, ["study", "publish", str(guide.folder), "--note", note])
        return result.exit_code, " ".join(result.output.split())

    assert publish("The first one")[0] == 0  # nothing was ever published
    day = versions.published(guide.folder)[0].published[:10]
    code, said = publish("Something else, it says")
    assert code == 2
    assert f"nothing is published: the guide is the same, page by page, as its version 1 of {day}" in said
    assert versions.numbers(guide.folder) == [1]
    write_guide(guide.folder, first=FIRST.replace("Four linears", "Four projections"))
    store_formulas(guide.folder)
    assert publish("Other words")[0] == 0
    assert publish("Other words")[0] == 2
    assert versions.numbers(guide.folder) == [1, 2]


OUTSIDE = [
    "../escaped",
    "/tmp/escaped",
    "a/../../escaped",
    "a//b",
    "..\\escaped",
    "C:escaped",
    "",
    "a/./b",
    "a/",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_name_that_leads_out_of_the_site_is_refused(twice, tmp_path, name):
    path = twice.folder / "versions" / "1.json"
    held = json.loads(path.read_text())["files"]
    rewrite(path, files={name: held["index.html"]})
    with pytest.raises(GuideError, match="names the file") as caught:
        build_site(twice, tmp_path / "site")
    assert caught.value.file == str(path)
    assert any("names the file" in message for message in messages(twice.folder))
    with pytest.raises(BuildError, match="outside of the site"):
        write({"index.html": b"", name: b"x"}, tmp_path / "written")
    assert not (tmp_path / "site").exists()
    assert not (tmp_path / "written").exists()


def test_the_server_gets_the_same_pages_and_no_answers(twice):
    whole, served = versions.files(twice.folder, 1), versions.files(twice.folder, 1, answers=False)
    assert set(whole) - set(served) == {"answers.json", "answers/index.html"}
    assert served == {name: whole[name] for name in served}
    assert versions.read(twice.folder, 1, "answers.json") == whole["answers.json"]
    assert versions.read(twice.folder, 1, "../2.json") is None


def test_a_version_freezes_what_is_said_and_not_how_it_works(twice, tmp_path):
    """A mistake in a script, once mended, is mended in every version."""
    assert not [name for name in versions.files(twice.folder, 1) if "static/" in name or name.endswith(".js")]
    build_site(twice, tmp_path / "site")
    loaded = 0
    for page in (tmp_path / "site" / "v").rglob("index.html"):
        for link in re.findall(r'(?:src|href)="([^"]*static/[^"]*)"', page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            assert target.is_file(), (page, link)
            assert target.is_relative_to(tmp_path / "site" / "static"), (page, link)
            loaded += 1
    assert loaded > 100


def test_versions_json_tells_which_is_newest_and_which_pages_there_are(twice):
    data = json.loads(render_site(twice, "static")["versions.json"])
    assert data["current"] == 2
    assert [one["number"] for one in data["versions"]] == [1, 2]
    assert data["pages"] == list(twice.activities)


def test_a_note_is_needed(guide):
    with pytest.raises(GuideError, match="needs a note"):
        publish_guide(guide, "  ")
    assert versions.numbers(guide.folder) == []


def test_a_faulty_guide_is_not_published(guide):
    write_guide(guide.folder, first=FIRST.replace("{{fact:model.width}}", "{{fact:no.such}}"))
    with pytest.raises(GuideError):
        publish_guide(load_guide(guide.folder), "One")
    assert not (guide.folder / "versions").exists()


def test_the_command_publishes_a_guide_without_faults(guide, monkeypatch):
    from headwise.cli.app import app

    faults = [Fault(GuideError("no such word", "a.md", 7)), Fault(GuideError("odd", "b.md", 1), warning=True)]
    monkeypatch.setattr(publishing, "check_guide", lambda folder: faults)
    arguments = ["study", "publish", str(guide.folder), "--note", "The first one"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "a.md:7: no such word" in result.output
    assert versions.numbers(guide.folder) == []
    del faults[0]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "version 1 is published" in result.output
    assert versions.numbers(guide.folder) == [1]


def test_check_looks_at_versions_too(twice):
    path = next((twice.folder / "versions" / "files").rglob("??*/*"))
    path.write_bytes(b"other")
    messages = [str(fault) for fault in check_guide(twice.folder, run=False)]
    assert any("was altered: a version stays as it was" in message for message in messages)
