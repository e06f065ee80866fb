"""The line of every table and key, whatever TOML puts between them."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.study.content.toml_lines import TomlLines

TEXT = '''\
id = "a"   # a remark with [brackets] and "quotes"
words = """
[not] = a table
key = "not a key"
\\""" still
"""
raw = \'\'\'
[[neither]]
\'\'\'
listed = [
  "one", # ]
  { name = "two" },
]
[[questions]]
id = "first"
[[questions.options]]
text = "[[x]]"
[[questions.options]]
text = "y"
[[questions]]
"id" = 'second'
sub.key = 1
["model.base"]
value = 512
[ "model" . base ]
value = 3
'''


def test_every_value_of_a_text_has_its_line() -> None:
    data, lines = tomllib.loads(TEXT), TomlLines(TEXT)
    assert data["model"]["base"]["value"] == 3
    wanted = {
        ("id",): 1,
        ("words",): 2,
        ("raw",): 7,
        ("listed",): 10,
        ("listed", 1, "name"): 10,
        ("questions", 0): 14,
        ("questions", 0, "id"): 15,
        ("questions", 0, "options", 0): 16,
        ("questions", 0, "options", 1, "text"): 19,
        ("questions", 1): 20,
        ("questions", 1, "id"): 21,
        ("questions", 1, "sub", "key"): 22,
        ("model.base",): 23,
        ("model.base", "value"): 24,
        ("model", "base", "value"): 26,
        ("unknown",): 1,
        ("questions", 1, "unknown"): 20,
    }
    assert {path: lines[path] for path in wanted} == wanted


def test_lines_count_from_where_the_text_begins() -> None:
    assert TomlLines("a = 1\nb = 2\n", first=10)[("b",)] == 11


@given(
    st.lists(
        st.sampled_from(
            [
                '"text # [x]"',
                '"""a\n[b]\nc = 1"""',
                "'''\n[[d]]'''",
                "[1,\n 2]",
                "{ x = [1, 2] }",
                "1.5",
                '["]", "\\""]',
                '""',
            ]
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=100)
def test_keys_are_found_behind_any_values(values: list[str]) -> None:
    text, wanted = "", {}
    for number, value in enumerate(values):
        wanted[f"key{number}"] = text.count("\n") + 1
        text += f"key{number} = {value}\n"
        if number % 3 == 2:
            text += "\n# remark [y]\n"
    tomllib.loads(text)
    lines = TomlLines(text)
    assert {name: lines[(name,)] for name in wanted} == wanted


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark"])
def test_a_text_without_values_has_its_first_line(text: str) -> None:
    assert TomlLines(text)[("a", 3)] == 1
