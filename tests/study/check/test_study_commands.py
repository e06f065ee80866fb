"""`headwise study check`, `new` and `verify`, as an author types them."""

from __future__ import annotations

from pathlib import Path

import checked_guide
import pytest
from typer.testing import CliRunner, Result

from headwise.cli.app import app

PAGES = Path(__file__).parents[1] / "paper" / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)], catch_exceptions=False)


def test_a_good_guide_has_nothing_to_complain_of(tmp_path: Path) -> None:
    found = run("check", checked_guide.write(tmp_path))
    assert found.exit_code == 0
    assert found.output == f"{tmp_path}: nothing to complain of\n"


def test_errors_are_counted_and_end_with_1(tmp_path: Path) -> None:
    changes = {"activities/10-light.md": ("width = 3", "width = three"), "words.txt": ("# none yet", "a b")}
    folder = checked_guide.write(tmp_path, changes=changes)
    found = run("check", folder)
    assert found.exit_code == 1
    line = checked_guide.line_of(folder, "activities/10-light.md", "width = three")
    told = found.output.splitlines()
    assert told[0].startswith(f"{folder}/activities/10-light.md:{line}: the code of #first fails: NameError")
    assert told[-2].startswith(f"{folder}/words.txt:1: ")
    assert told[-1] == f"{folder}: {len(told) - 1} errors"
    without = run("check", folder, "--no-run")
    assert without.output.splitlines()[-1] == f"{folder}: 1 error"


def test_warnings_alone_end_with_0(tmp_path: Path) -> None:
    changes = {"activities/10-light.md": ("The [mask]", "Of 512 lamps the [mask]")}
    found = run("check", checked_guide.write(tmp_path, changes=changes), "--no-run")
    assert found.exit_code == 0
    assert found.output.endswith(f"{tmp_path}: 1 warning\n")


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    found = run("check", tmp_path / "nowhere")
    assert found.exit_code == 1
    assert "there is no such folder" in found.output
    (tmp_path / "lamps").write_text("a file", encoding="utf-8")
    assert (
        f"{tmp_path / 'lamps'}: this is a file, and a guide is a folder\n"
        in run("check", tmp_path / "lamps").output
    )


@pytest.mark.parametrize(("first", "second"), [("earlier", "later"), ("later", "earlier")])
def test_a_guide_is_begun_checked_and_held_against_its_page(tmp_path: Path, first: str, second: str) -> None:
    folder = tmp_path / "on-lamps"
    begun = run("new", "--paper", PAGES / f"{first}.html", folder)
    assert begun.exit_code == 0
    assert begun.output.startswith("On Lamps: 23 places of 1234.56789v2\n")
    assert run("check", folder).exit_code == 0
    assert "year = 2012" in (folder / "guide.toml").read_text(encoding="utf-8")
    recorded = run("verify", "--paper", PAGES / f"{first}.html", folder, "--record")
    assert recorded.exit_code == 0
    assert "19 hashes written" in recorded.output
    again = run("verify", "--paper", PAGES / f"{second}.html", folder)
    assert again.exit_code == 0
    wanted = "19 passages as recorded, 0 changed, 0 missing, 0 new, 0 without a recorded hash, 0 quotes"
    assert again.output.startswith(wanted)


def test_a_changed_page_ends_with_1_until_it_is_recorded(tmp_path: Path) -> None:
    folder, page = tmp_path / "on-lamps", tmp_path / "page.html"
    text = (PAGES / "later.html").read_text(encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    run("new", "--paper", page, folder)
    run("verify", "--paper", page, folder, "--record")
    page.write_text(text.replace("They shine.", "They glow."), encoding="utf-8")
    changed = run("verify", "--paper", page, folder)
    assert changed.exit_code == 1
    assert "Sx1.p1 (unnumbered section 1, paragraph 1) has other words" in changed.output
    assert run("verify", "--paper", page, folder, "--record").exit_code == 0
    assert run("verify", "--paper", page, folder).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new", "--paper", PAGES / "no_html.html", "{}/a"), "no div.ltx_page_main"),
        (("new", "--paper", "{}/nothing.html", "{}/a"), "can't be read"),
        (("new", "--paper", PAGES / "later.html", "{}/A b"), "is none: small letters"),
        (("new", "--paper", PAGES / "later.html", "{}/full"), "isn't an empty folder"),
        (("verify", "--paper", PAGES / "later.html", "{}/a"), "no such folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, arguments: tuple[object, ...], said: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept.txt").write_text("kept")
    found = run(*(str(one).format(tmp_path) for one in arguments))
    assert found.exit_code == 2
    assert len(found.output.splitlines()) == 1
    assert said in found.output
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "kept.txt"]
