"""`headwise trace`: the table of the issue's sizes, other layers, and sizes that don't fit."""

import json

import pytest
from typer.testing import CliRunner

from headwise.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["trace", *arguments], catch_exceptions=False)


def layer(**sizes):
    """Options from names: `kv_heads=2` is `--kv-heads 2`."""
    return [part for name, size in sizes.items() for part in (f"--{name.replace('_', '-')}", str(size))]


def steps(*arguments):
    found = json.loads(run("--json", *arguments).stdout)
    (section,) = found["sections"]
    return {step["name"]: step for step in section["steps"]}


def test_shapes_of_a_known_layer():
    text = run(*layer(batch=30, length=5, input_dim=1024, d_model=512, heads=8)).stdout
    for shape in ("(30, 5, 1024)", "(30, 5, 512)", "(30, 8, 5, 64)", "(30, 8, 5, 5)"):
        assert shape in text


def test_cross_attention_with_grouped_heads():
    sizes = layer(batch=2, length=3, d_model=20, heads=4, kv_heads=2, memory_length=7)
    found = steps(*sizes, "--causal")
    assert found["queries per head"]["shape"] == [2, 4, 3, 5]
    assert found["keys per head"]["shape"] == [2, 2, 7, 5]
    assert found["weights"]["shape"] == [2, 4, 3, 7]
    assert found["key projection"]["parameters"] == 20 * 2 * 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--heads", "7"], "512"),
        (["--heads", "8", "--kv-heads", "3"], "3"),
        (["--batch", "0"], "--batch 0 must be at least 1"),
        (["--memory-length", "-2"], "--memory-length -2"),
        (["--batch", "10000000"], "smaller --batch"),
    ],
)
def test_sizes_that_do_not_fit_are_one_line_and_exit_code_2(arguments, says):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("headwise: ")
    assert says in line
