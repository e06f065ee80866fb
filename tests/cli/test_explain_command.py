"""`headwise explain`: the library's own words for given sizes, and sizes that don't fit."""

import pytest
import torch
from typer.testing import CliRunner

import headwise as hw
from headwise.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=False)


def test_it_says_what_the_library_says():
    q, k = torch.empty(2, 6, 11, 5), torch.empty(2, 3, 13, 5)
    v = torch.empty(2, 3, 13, 7)
    mask = hw.Causal() & hw.Window(before=3, after=0)
    expected = str(hw.explain(q, k, v, mask=mask, dropout=0.1, softcap=30.0))
    sizes = "--batch=2 --heads=6 --kv-heads=3 --length=11 --memory-length=13 --d-k=5 --d-v=7"
    options = "--causal --window=3 --dropout=0.1 --softcap=30"
    assert run(*sizes.split(), *options.split()).stdout.rstrip("\n") == expected.rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kv-heads", "3"], "kv_heads=3"),
        (["--kv-heads", "0"], "--kv-heads 0 must be at least 1"),
        (["--heads", "0"], "--heads 0 must be at least 1"),
        (["--d-k", "0", "--d-v", "3"], "--d-k 0 must be at least 1"),
        (["--length", "1000000000000"], "--length 1000000000000 is more than"),
        (["--batch", "1000000", "--length", "10000000", "--d-k", "1000000"], "2^62"),
        (["--dtype", "int8"], "--dtype int8: choose one of"),
        (["--window", "-1"], "--window -1"),
        (["--length", "-5"], "-5"),
        (["--device", "nowhere"], "--device nowhere: choose one of cpu, cuda"),
        (["--device", "cpu:x"], "--device cpu:x: choose one of"),
        (["--device", "cuda:77"], "--device cuda:77: torch finds no such device"),
        (["--dropout", "1.5"], "1.5"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, says):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("headwise: ")
    assert says in line


def test_sizes_that_no_machine_holds_are_explained_without_holding_them():
    result = run("--batch=1000", "--heads=1000", "--length=1000000", "--d-k=1000", "--grad", "--causal")
    assert result.exit_code == 0
    assert "q [1000, 1000, 1000000, 1000]" in result.stdout


def test_what_is_no_number_is_said_in_plain_words():
    for option in ("--heads", "--dropout"):
        result = run(option, "x")
        assert result.exit_code == 2
        assert "'x' is no" in result.stderr
        assert "parse" not in result.stderr
