"""headwise see RUN INPUT: what it prints and writes for the five applications, and mistakes."""

import json
import re
from pathlib import Path

import pytest
from tiny_runs import MAKE
from typer.testing import CliRunner

from headwise.cli.app import app

PARTS = {
    "translation": ["cross", "encoder", "decoder"],
    "summarization": ["cross", "copy", "encoder", "decoder"],
    "question-answering": ["encoder"],
    "vision": ["encoder", "rollout"],
    "speech": ["cross", "encoder", "decoder"],
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def see(*arguments, **options):
    return CliRunner().invoke(app, ["see", *map(str, arguments)], catch_exceptions=False, **options)


def refused(*arguments, **options):
    found = see(*arguments, **options)
    assert found.exit_code == 2, found.output
    [line] = found.stderr.strip().splitlines()
    assert line.startswith("headwise: ")
    assert not list(Path().iterdir())
    return line


@pytest.mark.parametrize("name", list(MAKE))
def test_each_application_prints_its_heads_and_writes_a_report(tiny_run, tiny_inputs, name):
    found = see(tiny_run(name), *tiny_inputs[name], env={"COLUMNS": "100"})
    assert found.exit_code == 0, found.output
    assert [path.name for path in Path().iterdir()] == ["headwise-report.html"]
    page = Path("headwise-report.html").read_text(encoding="utf-8")
    for title in re.findall(r"<h3 id=\"part-\w+\">(.*?)</h3>", page):
        assert title == "Attention rollout" or f"{title}: " in found.stdout
    rows = re.findall(r"^ *\d\.\d  +\S.*$", found.stdout, re.MULTILINE)
    assert len(rows) == page.count('data-at="')
    assert "Self-check" in found.stdout
    assert str(Path("headwise-report.html").resolve()) in found.stdout.replace("\n", "")
    assert len(re.findall(r"<script", page)) == 2 + len(PARTS[name])
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)


@pytest.mark.parametrize("name", list(MAKE))
def test_json_is_all_that_is_printed(tiny_run, tiny_inputs, name):
    found = see(tiny_run(name), *tiny_inputs[name], "--json", "--layer", "0")
    assert not list(Path().iterdir())
    told = json.loads(found.stdout)
    assert (told["schema"], told["run"]["application"]) == (1, name)
    assert [part["name"] for part in told["parts"]] == PARTS[name]
    assert isinstance(told["output"]["text"], str)
    for part in told["parts"]:
        assert {one["layer"] for one in part["facts"]} <= {0}
        for one in part["facts"]:
            assert [len(one["weights"]), len(one["weights"][0])] == part["cells"]
            assert sum(one["weights"][0]) == pytest.approx(1, abs=1e-4)
            query = one["strongest"]["query"]
            assert part["queries"]["labels"][query["index"]] == query["token"]


def test_the_alignment_names_the_strongest_keys_of_every_token(tiny_run):
    found = see(tiny_run("translation"), "one two.", "--json")
    told = json.loads(found.stdout)
    cross = told["parts"][0]
    shown = see(tiny_run("translation"), "one two.", env={"COLUMNS": "100"}).stdout
    for query, weights in zip(cross["queries"]["labels"], cross["mean"]["weights"], strict=True):
        best = max(weights)
        key = cross["keys"]["labels"][weights.index(best)]
        assert re.search(rf"^ *\d+ +{re.escape(query)} +{re.escape(key)} {best:.3f}", shown, re.MULTILINE)


def test_a_head_that_is_asked_for_opens_the_page(tiny_run):
    see(tiny_run("translation"), "one two.", "--layer", "0", "--head", "2", "--out", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert data["first"] == [0, 2]
    assert data["parts"][data["rows"][0]["part"]]["key"] == "cross"
    found = see(tiny_run("translation"), "one two.", "--layer", "1", "--out", "page.html")  # the encoder's
    page = Path("page.html").read_text(encoding="utf-8")
    row, column = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))["first"]
    assert data["rows"][row] == {"part": 1, "layer": 1}
    assert column == 3
    assert set(re.findall(r"^ *(\d)\.\d  +\S", found.stdout, re.MULTILINE)) == {"1"}


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("translation", [], "give a text in quotes or a text file after it"),
        ("vision", [], "give an image file after it"),
        ("speech", ["a.wav", "b.wav"], "give a wav file after it, not 2"),
        ("translation", ["one", "two"], "looks at one input"),
        ("translation", ["  "], "is empty"),
        ("translation", ["missing.txt"], "no file 'missing.txt'"),
        ("translation", ["one", "--layer", "2"], "--layer 2"),
        ("translation", ["one", "--head", "3"], "has heads 0 to 2"),
        ("translation", ["one", "--beam", "0"], "--beam 0"),
        ("translation", ["one", "--question", "why"], "--question is of no use"),
        ("translation", ["one", "--invert"], "--invert is of no use"),
        ("translation", ["one", "--stride", "3"], "--model and --stride"),
        ("translation", ["one", "--checkpoint", "first"], "--checkpoint first"),
        ("translation", ["one", "--out", "no/where.html"], "there is no folder no"),
        ("question-answering", ["a text"], "needs a question"),
        ("question-answering", ["a text", "--question", " "], "the question is empty"),
        ("vision", ["a text"], "there is no file a text"),
        ("vision", ["image.png", "--beam", "2"], "--beam is of no use"),
        ("speech", ["missing.wav"], "there is no file missing.wav"),
    ],
)
def test_mistakes_are_one_line(tiny_run, name, words, said):
    assert said in refused(tiny_run(name), *words)


def test_inputs_of_another_kind_are_one_line(tiny_run, tiny_inputs):
    [image], [wav] = tiny_inputs["vision"], tiny_inputs["speech"]
    assert "is no UTF-8 text" in refused(tiny_run("translation"), image)
    assert "is no image" in refused(tiny_run("vision"), wav)
    assert "can't be read as wav" in refused(tiny_run("speech"), image)


def test_folders_that_hold_no_run_are_one_line(tiny_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("none")
    assert "is no run" in refused(folder, "a text")
    (folder / "config.json").write_text("{")
    assert "damaged" in refused(folder, "a text")
    (folder / "config.json").write_text((tiny_run("vision") / "config.json").read_text())
    assert "no checkpoint" in refused(folder, "image.png")
    assert "is a folder" in refused(folder)
    assert "are for a run" in refused("a text", "--question", "why")


def test_a_run_that_is_not_there_is_not_read_as_a_text():
    assert "no file 'runs/x', and no run either" in refused("runs/x")
    assert "there is no run runs/x" in refused("runs/x", "a text")
    assert "there is no run runs/x" in refused("runs/x", "a text", "--question", "why")
    assert "put the text in quotes" in refused("and/or", "both")


def test_patches_are_told_as_patches(tiny_run, tiny_inputs):
    told = " ".join(see(tiny_run("vision"), *tiny_inputs["vision"]).stdout.split())  # wherever lines end
    assert "Nearby: itself and the patches beside, above and below" in told
    assert "2,0 is the first patch of the third row" in told


def test_nothing_of_an_input_becomes_markup(tiny_run):
    evil = "</script><script>alert(1)</script> <b>two</b>"
    see(tiny_run("translation"), evil, "--out", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<b>two" not in page
    assert page.count("<script") == page.count("</script>") == 5
