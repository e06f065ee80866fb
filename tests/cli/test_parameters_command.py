"""`headwise parameters`: the paper's models, part by part."""

import json

import pytest
from typer.testing import CliRunner

from headwise.cli.app import app
from headwise.models.table3 import TABLE_3


def run(*arguments):
    return CliRunner().invoke(app, ["parameters", *arguments], catch_exceptions=False)


def test_the_base_model():
    text = run("base").stdout
    for shown in ("1,048,576", "2,099,712", "44,101,632", "63,045,632", "the paper prints 65"):
        assert shown in text
    assert "doesn't say" in " ".join(text.split())


def test_a_row_as_json():
    found = json.loads(run("b d_k=16", "--vocab", "41100", "--json").stdout)
    assert found["row"] == "B d_k=16"
    assert round(found["total"] / 1e6) == found["paper_millions"] == 58
    assert sum(part["parameters"] for part in found["parts"]) == found["total"]
    assert found["total"] - found["layers"] == 41100 * 512
    low, high = found["vocabularies_that_fit_the_paper"]
    assert low <= 41100 <= high


def test_all_rows():
    text = run("all").stdout
    for row in TABLE_3:
        assert row.name in text
    assert "no single vocabulary gives every row" in " ".join(text.split())
    found = json.loads(run("all", "--json").stdout)
    assert [one["row"] for one in found] == [row.name for row in TABLE_3]
    assert [one["row"] for one in found if one["paper_millions"] is None] == [
        row.name for row in TABLE_3 if row.name[0] in "ADE"
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["F"], "no row 'F'; its rows are \"base\""), (["base", "--vocab", "2"], "--vocab 2")],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, says):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("headwise: ")
    assert says in line
