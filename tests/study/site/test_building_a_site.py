"""Writing a site: whole or not at all, the same bytes every time, and nothing else destroyed."""

import json
import os
import shutil
from pathlib import Path

import pytest
from small_guide import FIRST, small_guide, write_guide
from typer.testing import CliRunner

from headwise.study import site
from headwise.study.content import load_guide
from headwise.study.errors import GuideError
from headwise.study.site import BuildError, build_site


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def beside(folder):
    return sorted(path.name for path in folder.parent.iterdir())


def test_building_twice_gives_the_same_bytes(guide, tmp_path):
    out = tmp_path / "out" / "site"
    count = build_site(guide, out)
    first = tree(out)
    assert len(first) == count
    assert first[".nojekyll"] == b""
    build_site(load_guide(guide.folder), out)
    assert tree(out) == first
    assert beside(out) == ["site"]


def test_a_faulty_guide_leaves_the_old_site(guide, tmp_path):
    out = tmp_path / "out" / "site"
    build_site(guide, out)
    before = tree(out)
    write_guide(guide.folder, first=FIRST.replace('print("width"', 'print(1 / 0, "width"'))
    with pytest.raises(GuideError, match="division by zero") as caught:
        build_site(load_guide(guide.folder), out)
    assert caught.value.file.endswith("10-first.md")
    assert tree(out) == before
    assert beside(out) == ["site"]


@pytest.mark.parametrize("failing", ["write", "swap"])
def test_a_full_disk_leaves_the_old_site(guide, tmp_path, monkeypatch, failing):
    out = tmp_path / "out" / "site"
    build_site(guide, out)
    before = tree(out)

    def full(*_):
        raise OSError(28, "No space left on device")

    if failing == "write":
        monkeypatch.setattr(site, "write", full)
    else:
        real, calls = os.replace, []

        def second_fails(source, target):
            calls.append(target)
            if len(calls) == 2:
                full()
            real(source, target)

        monkeypatch.setattr(site.os, "replace", second_fails)
    with pytest.raises(BuildError, match="No space left"):
        build_site(guide, out)
    monkeypatch.undo()
    assert tree(out) == before
    assert beside(out) == ["site"]


def test_a_folder_with_something_else_is_refused(guide, tmp_path):
    out = tmp_path / "work"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(BuildError, match="no earlier site of small"):
        build_site(guide, out)
    assert (out / "thesis.txt").read_text() == "years of work"


def test_a_file_a_link_and_the_guide_itself_are_refused(guide, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(BuildError, match="is no folder"):
        build_site(guide, file)
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(BuildError, match="is no folder"):
        build_site(guide, link)
    for folder in (guide.folder, guide.folder.parent):
        with pytest.raises(BuildError, match="holds the guide itself"):
            build_site(guide, folder)


def test_an_empty_folder_is_taken(guide, tmp_path):
    out = tmp_path / "empty"
    out.mkdir()
    build_site(guide, out)
    assert (out / "index.html").is_file()


def test_files_of_an_older_site_go(tmp_path):
    guide = small_guide(tmp_path / "g")
    out = tmp_path / "site"
    build_site(guide, out)
    listed = json.loads((out / "files.json").read_text())
    assert listed == {"guide": "small", "files": sorted(tree(out))}
    (out / "old-activity").mkdir()
    (out / "old-activity" / "index.html").write_text("old")
    (out / "files.json").write_text(
        json.dumps({"guide": "small", "files": [*listed["files"], "old-activity/index.html"]})
    )
    build_site(guide, out)
    assert not (out / "old-activity").exists()


@pytest.mark.parametrize(
    ("file", "named"),
    [(".git/HEAD", ".git/"), ("CNAME", "CNAME"), ("first/notes.txt", "first/notes.txt"), ("v/9/a.txt", "v/")],
)
def test_what_is_not_the_site_s_is_named_and_stays(guide, tmp_path, file, named):
    out = tmp_path / "pages"
    build_site(guide, out)
    path = out / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("mine")
    before = tree(out)
    with pytest.raises(BuildError, match="not the site's") as caught:
        build_site(guide, out)
    assert f" {named}." in str(caught.value)
    assert tree(out) == before
    assert beside(out) == ["pages", "small"]


def test_a_link_inside_the_site_and_many_files_are_named(guide, tmp_path):
    out = tmp_path / "pages"
    build_site(guide, out)
    (out / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    for number in range(6):
        (out / f"note-{number}").write_text("mine")
    with pytest.raises(BuildError, match=r"elsewhere/, note-0, note-1, note-2, note-3 and 2 more\."):
        build_site(guide, out)


def test_a_site_without_its_list_is_not_taken_for_one(guide, tmp_path):
    out = tmp_path / "site"
    build_site(guide, out)
    (out / "files.json").unlink()
    with pytest.raises(BuildError, match="no earlier site of small"):
        build_site(guide, out)
    assert (out / "index.html").is_file()


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("done", [False, True])
def test_ctrl_c_while_the_sites_change_places_leaves_one_of_them(guide, tmp_path, monkeypatch, at, done):
    """Before or after each rename."""
    out = tmp_path / "out" / "site"
    build_site(guide, out)
    before = tree(out)
    real, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) == at and not done:
            raise KeyboardInterrupt
        real(source, target)
        if len(calls) == at and done:
            raise KeyboardInterrupt

    monkeypatch.setattr(site.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_site(guide, out)
    monkeypatch.undo()
    assert tree(out) == before
    assert beside(out) == ["site"]


def test_an_old_site_that_can_t_be_brought_back_is_kept_and_named(guide, tmp_path, monkeypatch):
    out = tmp_path / "out" / "site"
    build_site(guide, out)
    before = tree(out)
    real, calls = os.replace, []

    def only_once(source, target):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(30, "Read-only file system")
        real(source, target)

    monkeypatch.setattr(site.os, "replace", only_once)
    with pytest.raises(BuildError, match="the earlier site lies in") as caught:
        build_site(guide, out)
    assert tree(Path(str(caught.value).split("lies in ")[1])) == before


def test_the_command_builds_and_tells_faults_in_a_line(guide, tmp_path):
    from headwise.cli.app import app

    out = tmp_path / "site"
    result = CliRunner().invoke(app, ["study", "build", str(guide.folder), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert f"{out}: {len(tree(out))} files" in result.output.replace("\n", "")
    assert f"python -m http.server --bind 127.0.0.1 --directory {out} 8000" in result.output
    shutil.copy(guide.folder / "activities" / "20-second.md", guide.folder / "activities" / "21-twin.md")
    result = CliRunner().invoke(app, ["study", "build", str(guide.folder), "-o", str(out)])
    assert result.exit_code == 2
    assert "21-twin.md" in result.output


def test_an_answer_that_is_no_number_is_told_with_its_line(guide, tmp_path):
    from headwise.cli.app import app

    quiz = guide.folder / "activities" / "14-first.quiz.toml"
    quiz.write_text(quiz.read_text().replace("answer = 86753", "answer = nan"))
    line = quiz.read_text().splitlines().index("answer = nan") + 1
    result = CliRunner().invoke(app, ["study", "build", str(guide.folder), "-o", str(tmp_path / "site")])
    assert result.exit_code == 2
    assert f"14-first.quiz.toml:{line}: nan is no number" in " ".join(result.output.split())
