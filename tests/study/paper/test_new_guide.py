"""A guide begun from a page, and held against it later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lamp_pages import EARLIER, LATER

from headwise.study.check import check_guide
from headwise.study.content import canonical, load_guide
from headwise.study.errors import GuideError
from headwise.study.paper import compare, new_guide, read_page, record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_guide(read_page(EARLIER), tmp_path / "on-lamps", year=2021)
    return tmp_path / "on-lamps"


def test_a_new_guide_passes_its_checks(folder: Path) -> None:
    assert [str(fault) for fault in check_guide(folder)] == []
    guide = load_guide(folder)
    assert guide.id == "on-lamps"
    assert guide.paper.url("S1.p1") == "https://arxiv.org/html/1234.56789v2#S1.p1"
    assert set(guide.anchors) == set(read_page(LATER).passages)
    assert guide.anchors["S1.p1"].formulas == 2


def test_none_of_the_papers_words_are_kept(folder: Path) -> None:
    kept = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())
    for words in ("towards the", "It hears", "Small angles", "Hearing ships", "More lamps", "Thanks"):
        assert words not in kept
        assert words.split()[0] in EARLIER


def test_a_title_of_any_letters_makes_a_guide_that_passes(tmp_path: Path) -> None:
    odd = EARLIER.replace(">On Lamps<", '>"Zorgly" \\ $lamps_ &amp; *Vrumms* [1]<')
    new_guide(read_page(odd), tmp_path / "odd", year=2021)
    assert [str(fault) for fault in check_guide(tmp_path / "odd", run=False)] == []


def test_a_folder_that_holds_something_is_left_alone(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(GuideError, match="isn't an empty folder"):
        new_guide(read_page(LATER), folder, year=2021)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(GuideError, match="'On Lamps' is none"):
        new_guide(read_page(LATER), folder.parent / "On Lamps", year=2021)
    assert not (folder.parent / "On Lamps").exists()


def test_recorded_hashes_hold_for_the_other_generation(folder: Path) -> None:
    page = read_page(EARLIER)
    first = compare(load_guide(folder), page)
    assert first.errors() == []
    with_words = [name for name, one in page.passages.items() if one.sha256]
    assert first.unrecorded == with_words
    assert record(load_guide(folder), page) == len(with_words)
    again = compare(load_guide(folder), read_page(LATER))
    assert again.same == with_words
    assert not again.errors()
    assert (again.changed, again.new, again.unrecorded) == ({}, [], [])


def test_what_changed_and_went_and_came_is_told_with_its_line(folder: Path) -> None:
    record(load_guide(folder), read_page(EARLIER))
    other = LATER.replace("They shine.", "They glow.").replace('id="A1.p1"', 'id="A1.p2"')
    found = compare(load_guide(folder), read_page(other))
    assert list(found.changed) == ["Sx1.p1"]
    assert list(found.missing) == ["A1.p1"]
    assert found.new == ["A1.p2"]
    lines = (folder / "anchors.json").read_text(encoding="utf-8").splitlines()
    for name, error in {**found.changed, **found.missing}.items():
        assert f'"{name}"' in lines[error.line - 1]
    assert found.errors(accept=True) == list(found.missing.values())
    record(load_guide(folder), read_page(other))
    assert not compare(load_guide(folder), read_page(other)).changed
    assert "A1.p1" in json.loads((folder / "anchors.json").read_text(encoding="utf-8"))["anchors"]


@pytest.mark.parametrize(
    ("anchor", "quote", "there"),
    [
        ("S1.p1", "turns” by $a_t$ towards the ship", True),
        ("S1.p1.6", "within $r$ miles", True),
        ("S1.p1", "turns away from the ship", False),
        ("footnote1", "a bell", True),
        ("S1.T1", "north", True),
        ("S1.I1.i1", "It hears.", True),
    ],
)
def test_quotes_are_held_against_their_passage(folder: Path, anchor: str, quote: str, there: bool) -> None:
    sources = f'["{anchor}"]\nabout = "Something."\nquote = "{quote}"\n'
    (folder / "sources.toml").write_text(sources, encoding="utf-8")
    found = compare(load_guide(folder), read_page(LATER))
    assert list(found.quotes) == ([] if there else [canonical(anchor)])
    if not there:
        assert str(found.errors()[0]).startswith(
            f"{folder / 'sources.toml'}:1: S1.p1: the passage doesn't hold"
        )


def test_another_version_of_the_paper_is_told(folder: Path) -> None:
    found = compare(load_guide(folder), read_page(LATER.replace("56789v2", "56789v3")))
    assert "1234.56789v3, but the guide is about 1234.56789v2" in str(found.errors()[0])
    without_version = read_page(LATER.replace("56789v2", "56789"))
    assert not compare(load_guide(folder), without_version).errors()


def test_a_place_of_another_kind_is_told(folder: Path) -> None:
    path = folder / "anchors.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"S1.F1": {"kind": "figure"', '"S1.F1": {"kind": "table"')
    )
    assert list(compare(load_guide(folder), read_page(LATER)).moved) == ["S1.F1"]
