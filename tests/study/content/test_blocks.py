"""A lesson's text cut into blocks, and what is wrong with it by line."""

from __future__ import annotations

import pytest

from headwise.study.content.directives import Blocks
from headwise.study.content.fences import fences, without_code
from headwise.study.content.lesson_file import parse_lesson


def test_a_block_has_its_id_sources_title_body_and_lines() -> None:
    first = ':::{explain} #one sources="S1.p1.6 S1.E1" quote=S1.p1.1 title="A \\"title\\""'
    text = f"{first}\n\nProse.\n\nMore.\n\n:::\n"
    (block,) = parsed(text)
    assert (block.kind, block.id, block.title) == ("explain", "one", 'A "title"')
    assert block.sources == ["S1.p1", "S1.E1"]
    assert block.quote == "S1.p1"
    assert block.body == "Prose.\n\nMore."
    assert (block.line, block.body_line) == (1, 3)


def test_colons_in_code_close_nothing() -> None:
    text = (
        ":::{code} #one sources=none reason=why\n```python\nx = '''\n:::\n'''\n```\n~~~\n```\n:::\n~~~\n:::\n"
    )
    (block,) = parsed(text)
    assert block.body.count(":::") == 2
    assert [fence.line for fence in fences(block.body, block.body_line)] == [3, 8]


def test_a_solution_stands_in_its_exercise_and_rests_on_its_sources() -> None:
    text = (
        '::::{exercise} #do sources="S1.p1"\nCount.\n:::{solution}\nThree.\n:::\n::::\n'
        ':::::{exercise} #again sources=none reason="Practice."\nCount.\n'
        "::::{solution} #mine\nFour.\n::::\n:::::\n"
    )
    first, second = parsed(text)
    assert [one.id for one in (*first.children, *second.children)] == ["do-solution", "mine"]
    assert first.children[0].sources == ["S1.p1"]
    assert second.children[0].reason == "Practice."
    assert first.body == "Count."
    assert first.children[0].body_line == 4


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("Prose.\nMore.\n", 1, "stands in no block"),
        (":::{explane} #a sources=S1\n:::\n", 1, "no block {explane}: the kinds are explain, detail"),
        (":::{explain} sources=S1\n:::\n", 1, "has no id"),
        (":::{explain} #A_b sources=S1\n:::\n", 1, "#A_b is no id"),
        (":::{explain} #a sources=S1 sources=S2\n:::\n", 1, "sources is given twice"),
        (":::{explain} #a sources=S1 symbol=headwise.Causal\n:::\n", 1, "{explain} has no symbol"),
        (":::{detail} #a sources=S1\n:::\n", 1, '{detail} needs symbol="..."'),
        (":::{later} #a link=https://example.org\n:::\n", 1, "needs link-title"),
        (":::{check} #a\n:::\n", 1, "needs question"),
        (":::{visual} #a\n:::\n", 1, "needs visual"),
        (':::{explain} #a sources="S1\n:::\n', 1, "is neither #id nor key="),
        (":::{explain} #a sources=S1\nProse.\n", 1, "the block explain has no end: close it with :::"),
        (":::{explain} #a sources=S1\n::::\n", 2, "4 colons close the explain of line 1, which has 3"),
        ("\n:::\n", 2, "none is open"),
        (":::{explain} #a sources=S1\n```python\n:::\n", 2, "this code has no end"),
        (
            "::::{explain} #a sources=S1\n:::{summary} #b sources=S1\n:::\n::::\n",
            2,
            "stands inside {explain}",
        ),
        (":::{exercise} #a sources=S1\n:::{solution}\n:::\n:::\n", 2, "needs more colons than its solution"),
        (":::{solution}\n:::\n", 1, "stands inside its exercise"),
        (":::explain #a\nProse.\n:::\n", 1, "a block begins like"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, said: str) -> None:
    errors = Blocks(text, "lesson.md").errors
    assert said in str(errors[0])
    assert str(errors[0]).startswith(f"lesson.md:{line}: ")


@pytest.mark.parametrize(
    ("text", "lines", "ids"),
    [
        (":::{explain} #a sources=S1\nOne.\n:::{trap} #b sources=S1\nTwo.\n:::\n", [1], ["a", "b"]),
        (
            "::::{exercise} #a sources=S1\nDo.\n:::{solution}\nSo.\n::::\n:::{trap} #b sources=S1\n:::\n",
            [3],
            ["a", "b"],
        ),
    ],
)
def test_a_missing_end_is_one_fault_and_spoils_no_other_block(text: str, lines: list, ids: list) -> None:
    blocks = Blocks(text, "lesson.md")
    assert [error.line for error in blocks.errors] == lines
    assert [block.id for block in blocks.blocks] == ids


def test_all_faults_are_told() -> None:
    text = ":::{explain} sources=S1\n:::\n\nStray.\n\n:::{trap} sources=S1\n:::\n"
    assert [error.line for error in Blocks(text, "lesson.md").errors] == [1, 4, 6]


LESSON = '+++\nid = "one"\ntitle = "One"\nminutes = 3\n+++\n\n:::{explain} #a sources=S1\nProse.\n:::\n'


def test_a_lesson_is_its_front_matter_and_its_blocks() -> None:
    errors: list = []
    lesson = parse_lesson(LESSON, "guide/one.md", "one.md", errors)
    assert errors == []
    assert lesson is not None
    assert (lesson.id, lesson.minutes, lesson.file, lesson.type) == ("one", 3, "one.md", "lesson")
    assert lesson.blocks[0].line == 7


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (LESSON.removeprefix("+++\n"), 1, "begins with +++"),
        (LESSON.replace("3\n+++", "3\n"), 1, "has no end"),
        (LESSON.replace("minutes = 3", "minutes = three"), 4, "not TOML"),
        (LESSON.replace("minutes = 3", 'minutes = "three"'), 4, "minutes: Expected `int`, got `str`"),
        (LESSON.replace("minutes", "minuets"), 2, "there is no field `minuets`"),
        (LESSON.replace('title = "One"\n', ""), 2, "lacks the field `title`"),
        (
            LESSON.replace("+++\n\n", "+++\n\n:::{explain} #b\nText.\n"),
            7,
            "the block explain has no end",
        ),
    ],
)
def test_a_lesson_file_tells_its_lines(text: str, line: int, said: str) -> None:
    errors: list = []
    parse_lesson(text, "one.md", "one.md", errors)
    assert any(str(error).startswith(f"one.md:{line}: ") and said in str(error) for error in errors), errors


def test_text_without_code_keeps_its_lines() -> None:
    text = "One `two` three\n```\nfour\n```\nfive ``six ` seven``"
    assert without_code(text).split("\n") == [
        "One       three",
        "",
        "",
        "",
        "five " + " " * len("``six ` seven``"),
    ]
    assert without_code(text, inline=False).split("\n")[0] == "One `two` three"


def parsed(text: str) -> list:
    blocks = Blocks(text, "lesson.md")
    assert blocks.errors == []
    return blocks.blocks
