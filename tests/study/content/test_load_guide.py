"""A guide's folder, read whole or told what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ids_of_places import NOWHERE, ONE_PLACE, PLACES, WITHIN

from headwise.study.content import GuideError, canonical, load_guide, read_guide
from headwise.study.errors import GuideError as Raised

GUIDE = """\
id = "g"
title = "G"
paper = { title = "P", authors = "A", year = 2020, html = "https://example.org/p" }
[[parts]]
title = "One"
activities = [
  "quiz",
  "lesson",
]
"""
ANCHORS = """\
{
 "paper": "",
 "anchors": {
  "S1.p1": {"kind": "paragraph", "label": "1, paragraph 1"}
 }
}
"""
LESSON = """\
+++
id = "lesson"
title = "L"
+++
:::{explain} #a sources="S1.p1.2"
Text.
:::
"""
QUIZ = """\
id = "quiz"
title = "Q"
[[questions]]
id = "q"
kind = "numeric"
prompt = "?"
sources = ["S1.p1.6"]
answer = 3
[[questions.mistakes]]
value = 4
why = "No."
"""
FILES = {
    "guide.toml": GUIDE,
    "anchors.json": ANCHORS,
    "sources.toml": '["S1.p1.6"]\nabout = "Something."\n',
    "facts.toml": '["a.b"]\nvalue = 3\nsources = ["S1.p1.1"]\n',
    "activities/20-lesson.md": LESSON,
    "activities/30-quiz.quiz.toml": QUIZ,
}


def write(folder: Path, changes: dict[str, tuple[str, str]] | None = None) -> Path:
    for name, text in FILES.items():
        old, new = (changes or {}).get(name, ("", ""))
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return folder


def test_a_guide_is_read_in_teaching_order(tmp_path: Path) -> None:
    guide = load_guide(write(tmp_path))
    assert list(guide.activities) == ["quiz", "lesson"]
    assert guide.activity_of("q").id == "quiz"
    assert guide.questions()["q"].line == 3
    assert guide.questions()["q"].mistakes[0].value == 4
    assert guide.block("lesson#a").body == "Text."
    assert guide.folder == tmp_path
    with pytest.raises(KeyError, match="no block 'lesson#b'"):
        guide.block("lesson#b")
    with pytest.raises(KeyError, match="no question and no card 'r'"):
        guide.activity_of("r")


def test_every_suffix_of_a_paragraph_is_one_place(tmp_path: Path) -> None:
    """arXiv/html_feedback#1509: converters of two generations number the same paragraph .6 and .1."""
    guide = load_guide(write(tmp_path))
    assert guide.source("S1.p1") is guide.source("S1.p1.6") is guide.source("S1.p1.1")
    assert guide.block("lesson#a").sources == guide.questions()["q"].sources == guide.facts["a.b"].sources
    source = guide.source("S1.p1.6")
    assert (source.id, source.kind, source.label) == ("S1.p1", "paragraph", "1, paragraph 1")


def test_addresses_of_places_have_no_slash_before_the_hash(tmp_path: Path) -> None:
    """arXiv/html_feedback#382: a slash there is answered 404."""
    changes = {"guide.toml": ("https://example.org/p", "https://example.org/p/")}
    assert load_guide(write(tmp_path, changes)).source("S1.p1").url == "https://example.org/p#S1.p1"


@pytest.mark.parametrize(("anchor", "place"), ONE_PLACE.items())
def test_ids_lose_only_a_converters_suffix(anchor: str, place: str) -> None:
    assert canonical(anchor) == place


@pytest.mark.parametrize("anchor", [*WITHIN, "S1.p\u0661.\u0662"])
def test_what_lies_within_a_place_keeps_its_id(anchor: str) -> None:
    assert canonical(anchor) == anchor


def test_other_ids_become_no_place() -> None:
    assert {canonical(anchor) for anchor in NOWHERE}.isdisjoint(PLACES)


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "said"),
    [
        ("guide.toml", 'title = "G"', "title = ", 2, "not TOML"),
        ("guide.toml", "year = 2020", 'year = "2020"', 3, "paper.year: Expected `int`, got `str`"),
        ("guide.toml", '  "lesson",', '  "lessen",', 8, "no file in activities/ has the id 'lessen'"),
        ("guide.toml", '  "lesson",', '  "quiz",', 7, "quiz is listed twice"),
        ("anchors.json", '"label"', "label", 4, "not JSON"),
        ("anchors.json", '"paragraph"', '"page"', 4, "S1.p1: kind"),
        ("anchors.json", '"paper"', '"papers"', 1, "this holds"),
        ("sources.toml", "about", "abuot", 1, "S1.p1.6: there is no field `abuot`"),
        (
            "sources.toml",
            '"Something."\n',
            '"Something."\n["S1.p1"]\nabout = "Else."\n',
            3,
            "is the place of line 1",
        ),
        ("facts.toml", "value = 3", "value = []", 2, "a.b: value: Expected"),
        ("facts.toml", "value = 3", 'value = 3\nhow = "guessed"', 3, "a.b: how"),
        ("activities/30-quiz.quiz.toml", "answer = 3", 'answer = "3"', 8, "answer: Expected `float"),
        ("activities/30-quiz.quiz.toml", "value = 4", "values = 4", 9, "there is no field `values`"),
        ("activities/30-quiz.quiz.toml", 'kind = "numeric"', 'kind = "number"', 5, "kind"),
        ("activities/30-quiz.quiz.toml", "[[questions]]", "[questions]", 3, "is a list of tables"),
        ("activities/30-quiz.quiz.toml", 'title = "Q"\n', "", 1, "lacks the field `title`"),
        ("activities/20-lesson.md", 'id = "lesson"', 'id = "quiz"', 1, "has the id 'quiz' too"),
        ("activities/20-lesson.md", ":::\n", "", 5, "has no end"),
    ],
)
def test_what_is_wrong_has_its_file_and_line(
    tmp_path: Path, file: str, old: str, new: str, line: int, said: str
) -> None:
    folder = write(tmp_path, {file: (old, new)})
    _, errors = read_guide(folder)
    found = [str(error) for error in errors if said in str(error)]
    assert found, [str(error) for error in errors]
    if "too" in said:
        file = "activities/30-quiz.quiz.toml"  # the later of both
    assert found[0].startswith(f"{folder / file}:{line}: ")
    with pytest.raises(Raised) as raised:
        load_guide(folder)
    assert [raised.value, *raised.value.others] == errors


def test_faults_of_several_files_are_told_together(tmp_path: Path) -> None:
    changes = dict.fromkeys(("activities/20-lesson.md", "activities/30-quiz.quiz.toml"), ("id", "di"))
    guide, errors = read_guide(write(tmp_path, {**changes, "facts.toml": ("value", "vlaue")}))
    assert guide is not None
    assert {Path(error.file).name for error in errors} == {
        "20-lesson.md",
        "30-quiz.quiz.toml",
        "facts.toml",
        "guide.toml",
    }


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    guide, errors = read_guide(tmp_path / "nowhere")
    assert guide is None
    assert str(errors[0]) == f"{tmp_path / 'nowhere'}: there is no such folder"
    write(tmp_path)
    (tmp_path / "sources.toml").unlink()
    (tmp_path / "activities" / "notes.txt").write_text("?")
    (tmp_path / "facts.toml").write_bytes(b'["a"]\nvalue = "\xff"\n')
    told = [str(error) for error in read_guide(tmp_path)[1]]
    assert [one.removeprefix(str(tmp_path)) for one in told] == [
        "/activities/notes.txt: an activity's file ends with one of "
        ".md, .quiz.toml, .cards.toml, .visual.toml, .resources.toml",
        "/facts.toml:2: this is not UTF-8: save the file as UTF-8",
        "/sources.toml: a guide needs this file, and there is none",
    ]


def test_an_error_reads_as_editors_follow_it() -> None:
    assert str(GuideError("wrong", "a.toml", 3)) == "a.toml:3: wrong"
    assert str(GuideError("wrong", "a.toml")) == "a.toml: wrong"
    assert str(GuideError("wrong")) == "wrong"
