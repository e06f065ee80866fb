"""The command as a person or a program runs it."""

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headwise._version import __version__
from headwise.cli import see as command
from headwise.cli.app import app
from headwise.cli.report import render
from headwise.cli.table import print_heads

ESCAPES = re.compile(r"\x1b\[")


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch, minilm, tmp_path):
    """Every command here reads with the same model; files are written to a folder of their own."""
    real = command.open_model
    monkeypatch.setattr(
        command, "open_model", lambda name: (minilm, "all-MiniLM-L6-v2") if name == "minilm" else real(name)
    )
    monkeypatch.chdir(tmp_path)


def run(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False, **kwargs)


def files(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def test_a_row_for_each_of_the_72_heads_and_a_report(tmp_path):
    result = run("see")
    assert result.exit_code == 0
    rows = re.findall(r"^ *(\d)\.(\d+)  +(\S.*)$", result.stdout, re.MULTILINE)
    assert [(int(layer), int(head)) for layer, head, _ in rows] == [
        (i, j) for i in range(6) for j in range(12)
    ]
    assert "previous token 100%" in result.stdout
    assert "at least 40%" in " ".join(result.stdout.split())
    assert str(tmp_path / "headwise-report.html") in result.stdout
    assert Path("headwise-report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert files() == ["headwise-report.html"]


def test_80_columns_are_enough_and_a_pipe_gets_no_colours():
    result = run("see", "--layer", "1", env={"COLUMNS": "80"})
    lines = [line for line in result.stdout.splitlines() if not line.startswith("Report:")]
    assert max(map(len, lines)) <= 80
    assert not ESCAPES.search(result.stdout)
    assert "weight" in result.stdout


@pytest.mark.parametrize("columns", ["40", "60", "200"])
def test_other_widths(columns):
    result = run("see", "--layer", "1", env={"COLUMNS": columns})
    lines = [line for line in result.stdout.splitlines() if not line.startswith("Report:")]
    assert max(map(len, lines)) <= int(columns)


def test_one_head_shows_the_strongest_keys_of_every_token(seen):
    result = run("see", "--layer", "0", "--head", "2")
    assert len(re.findall(r"^ *0\.2 ", result.stdout, re.MULTILINE)) == 1
    for place, token in enumerate(seen.reading.tokens):
        if place:
            line = next(line for line in result.stdout.splitlines() if re.match(rf" *{place} +\S", line))
            assert f"{seen.reading.tokens[place - 1]} " in line, (place, token)


def test_no_token_commands_the_terminal_or_the_page(seen):
    """A model's vocabulary may hold anything: escape sequences, markup of the terminal's or the page's."""
    evil = "\x1b]0;title\x07[red]</script><script>alert(1)</script>"
    tokens = (seen.reading.tokens[0], *[evil] * (len(seen.reading.tokens) - 2), seen.reading.tokens[-1])
    hostile = replace(seen, model=evil, reading=replace(seen.reading, tokens=tokens))
    console = Console(file=io.StringIO(), width=200)
    print_heads(console, hostile, [hostile.of(0, 2)], arrow="->")
    printed = console.file.getvalue()
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert r"\x1b]0;title\x07[red]</script>" in printed
    page = render(hostile, text=evil, origin=evil)
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 3


def test_error_messages_are_printable():
    result = run("see", "--model", "\x1b[31mred", "word")
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert r"--model \x1b[31mred" in result.stderr


def test_json_is_all_that_is_printed(seen):
    result = run("see", "--json")
    found = json.loads(result.stdout)
    assert files() == []
    assert (found["schema"], found["headwise"]) == (1, __version__)
    assert found["model"] == {"name": "all-MiniLM-L6-v2", "layers": 6, "heads": 12, "d_k": 32, "limit": 512}
    assert found["text"]["tokens"] == list(seen.reading.tokens)
    assert len(found["heads"]) == 72
    head = found["heads"][2]
    assert (head["layer"], head["head"], head["kind"]) == (0, 2, "previous")
    assert head["shares"]["previous"] == pytest.approx(seen.of(0, 2).shares["previous"], abs=1e-6)
    strongest = head["strongest"]
    assert found["text"]["tokens"][strongest["query"]["index"]] == strongest["query"]["token"]
    assert "pairs" not in head


def test_json_of_one_head_holds_its_pairs(seen):
    result = run("see", "--json", "--layer", "2", "--head", "9", "--out", "page.html")
    (head,) = json.loads(result.stdout)["heads"]
    assert [pair["query"] for pair in head["pairs"]] == list(range(len(seen.reading.tokens)))
    for pair in head["pairs"]:
        assert pair["weights"] == sorted(pair["weights"], reverse=True)
        for key, weight in zip(pair["keys"], pair["weights"], strict=True):
            assert weight == pytest.approx(float(seen.weights[2, 9, pair["query"], key]), abs=1e-6)
    assert files() == ["page.html"]


def test_a_long_text_is_said_to_be_cut(long_text):
    Path("long.txt").write_text(long_text)
    words = " ".join(run("see", "long.txt", "--layer", "0").stdout.split())
    assert "has 884 tokens and the model takes 512" in words
    assert "--stride" in words


def test_a_stride_reads_a_long_text_whole(long_text):
    found = json.loads(run("see", "-", "--stride", "400", "--json", input=long_text).stdout)
    assert (found["text"]["whole"], found["text"]["windows"], found["text"]["cut"]) == (884, 2, False)
    assert len(found["text"]["tokens"]) == 884


def test_standard_input():
    result = run("see", "-", "--json", input="the cat saw the cat")
    assert json.loads(result.stdout)["text"]["tokens"][1:-1] == ["the", "cat", "saw", "the", "cat"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.txt"], "no file 'missing.txt'"),
        (["binary.bin"], "binary"),
        (["empty.txt"], "is empty"),
        ([""], "is empty"),
        (["."], "is a folder"),
        (["hello", "--model", "gpt-17"], "--model gpt-17"),
        (["hello", "--model", "."], "config.json"),
        (["hello", "--layer", "99"], "--layer 99: all-MiniLM-L6-v2 has layers 0 to 5"),
        (["hello", "--layer", "-1"], "--layer -1"),
        (["hello", "--head", "12"], "--head 12: all-MiniLM-L6-v2 has heads 0 to 11"),
        (["hello", "--stride", "0"], "--stride 0 must lie in 1 .. 510"),
        (["hello", "--out", "no/such/folder/page.html"], "there is no folder"),
        (["hello", "--out", "."], "is a folder"),
        (["hello", "--out", "empty.txt/page.html"], "there is no folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2_and_nothing_is_written(arguments, says):
    Path("binary.bin").write_bytes(b"PK\0\1")
    Path("empty.txt").write_bytes(b"")
    result = run("see", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("headwise: ")
    assert says in line
    assert files() == ["binary.bin", "empty.txt"]


def test_a_disk_that_refuses_leaves_the_old_report_whole(monkeypatch):
    Path("page.html").write_text("old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    result = run("see", "hello", "--out", "page.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No space left on device" in result.stderr
    assert Path("page.html").read_text() == "old"
    assert files() == ["page.html"]


def test_a_link_stays_a_link(tmp_path):
    Path("target.html").write_text("old")
    Path("link.html").symlink_to("target.html")
    run("see", "hello", "--out", "link.html")
    assert Path("link.html").is_symlink()
    assert Path("target.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="no /dev/null here")
def test_a_device_is_written_to_not_replaced():
    assert run("see", "hello", "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_version():
    assert run("version").stdout == f"headwise {__version__}\n"


def test_the_module_runs_as_a_program_where_the_terminal_knows_no_unicode(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "headwise", "see", "une tasse de café — “vide”", "--out", "page.html"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1", "COLUMNS": "80"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert b"all-MiniLM-L6-v2" in result.stdout
    assert b" -> " in result.stdout
    assert (tmp_path / "page.html").is_file()
