"""Code that a guide shows: run as a learner would, and the same every time."""

from __future__ import annotations

import os
import sys
import threading

import msgspec
import pytest
import torch

import headwise
from headwise.study.content import Question
from headwise.study.content.directives import Blocks
from headwise.study.content.lesson import Lesson
from headwise.study.errors import GuideError
from headwise.study.running import code as code_module
from headwise.study.running import process, run_lesson, run_lessons, shape_of
from headwise.study.running.process import run_jobs


def lesson(*blocks: str) -> Lesson:
    text = "".join(
        f":::{{code}} #b{number} sources=none\n```python\n{code}\n```\n:::\n"
        for number, code in enumerate(blocks)
    )
    return Lesson(id="l", title="L", blocks=Blocks(text, "l.md").blocks, file="l.md")


def test_blocks_share_their_names_and_print_apart() -> None:
    ran = run_lesson(lesson("x = 2\nprint(x)", "print(x + 1)\nprint(hw.Causal())"), "guide")
    assert [one.output for one in ran.values()] == ["2\n", "3\nCausal()\n"]
    assert all(one.error is None and one.seconds >= 0 for one in ran.values())


def test_random_numbers_are_the_same_each_time_and_the_callers_stay() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    code = "print(torch.rand(2))\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)"
    first, again = run_lesson(lesson(code, code), "g"), run_lesson(lesson(code), "g")
    assert first["b0"].output == first["b1"].output == again["b0"].output
    assert torch.equal(torch.rand(3), wanted)
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        ("x = 1\n\ny", 5, "NameError"),
        ("def f():\n    return 1 / 0\n\nf()", 4, "ZeroDivisionError"),
        ("x = 1\ny = = 2", 4, "SyntaxError"),
        ("torch.zeros(2, 3) @ torch.zeros(2, 3)", 3, "RuntimeError"),
        ("import sys\nsys.exit(3)", 4, "SystemExit"),
    ],
)
def test_a_failure_has_the_line_of_the_file(code: str, line: int, said: str) -> None:
    ran = run_lesson(lesson(code, "print('still')"), "guide")
    error = ran["b0"].error
    assert error is not None
    assert (error.file, error.line) == ("guide/l.md", line)
    assert said in str(error)
    assert ran["b1"].output == "still\n"


def question(code: str, ask: str) -> Question:
    return Question(id="q", kind="shape", prompt="?", code=code, ask=ask, line=7)


@pytest.mark.parametrize(
    ("code", "ask", "shape"),
    [
        (
            "layer = hw.MultiHeadAttention(19, 5, d_k=3, d_v=2)\nx = torch.zeros(2, 7, 19)",
            "layer(x).shape",
            [2, 7, 19],
        ),
        ("layer = hw.MultiHeadAttention(19, 5, d_k=3, d_v=2)", "layer.q_proj.weight", [15, 19]),
        ("", "torch.tensor(3.0)", []),
        ("x = 3", "[x, 5]", [3, 5]),
    ],
)
def test_a_shape_is_what_running_gives(code: str, ask: str, shape: list[int]) -> None:
    assert shape_of(question(code, ask), "q.toml") == shape


@pytest.mark.parametrize(
    ("code", "ask", "said"),
    [
        ("x = y", "x", "NameError"),
        ("x = 1", "x +", "SyntaxError"),
        ("x = 1", "x", "must give a shape"),
        ("", "[True]", "must give a shape"),
    ],
)
def test_what_gives_no_shape_is_told(code: str, ask: str, said: str) -> None:
    with pytest.raises(GuideError, match=rf"^q\.toml:7: q: .*{said}"):
        shape_of(question(code, ask), "q.toml")


def test_a_loop_without_end_is_ended_and_named(capfd) -> None:
    code = "x = 1\nwhile True:\n    x = x * 3 % 7"
    stuck = lesson("print('before')\n" + code, "print('never')")
    other = msgspec.structs.replace(lesson("print('other')"), id="other")
    found = run_lessons([stuck, other], "guide", limit=1.5)
    (error,) = [ran.error for ran in found["l"].values()]  # the block after it was not run
    assert error is not None
    assert (error.file, error.line in (5, 6)) == ("guide/l.md", True)
    assert "#b0" in str(error)
    assert "had not ended after 1.5 s" in str(error)
    assert found["l"]["b0"].output == "before\n"
    assert found["other"]["b0"].output == "other\n"
    assert capfd.readouterr() == ("", "")


def test_code_that_waits_for_ever_is_named_by_the_line_of_the_lesson() -> None:
    ran = run_lesson(lesson("import threading\n\nthreading.Event().wait()"), "guide", limit=1.0)
    error = ran["b0"].error
    assert error is not None
    assert error.line == 5


def test_a_question_without_end_is_ended() -> None:
    with pytest.raises(GuideError, match=r"^q\.toml:7: q: the code fails: it had not ended after 1 s"):
        shape_of(question("while True: pass", "x"), "q.toml", limit=1.0)


def test_code_that_ends_python_ends_no_more_than_its_lesson() -> None:
    crash = lesson("print(1)", "import os\nos._exit(7)", "print(3)")
    other = msgspec.structs.replace(lesson("print('other')"), id="other")
    found = run_lessons([crash, other], "guide")
    assert found["l"]["b0"].output == "1\n"
    error = found["l"]["b1"].error
    assert error is not None
    assert "ended Python itself (exit status 7)" in str(error)
    assert "b2" not in found["l"]
    assert found["other"]["b0"].output == "other\n"


def test_what_others_print_meanwhile_is_not_the_lessons(capsys) -> None:
    ended = threading.Event()

    def chatter() -> None:
        while not ended.wait(0.01):
            print("intruder")

    talking = threading.Thread(target=chatter)
    talking.start()
    try:
        ran = run_lesson(lesson("import time\nprint('mine')\ntime.sleep(0.3)\nprint('too')"), "guide")
    finally:
        ended.set()
        talking.join()
    assert ran["b0"].output == "mine\ntoo\n"
    assert "mine" not in capsys.readouterr().out


def test_code_can_not_change_this_python() -> None:
    code = "import os, sys\nos.environ['LEFT_BEHIND'] = '1'\nhw.Causal = None\nsys.setrecursionlimit(77)"
    limit, causal = sys.getrecursionlimit(), headwise.Causal
    assert run_lesson(lesson(code), "guide")["b0"].error is None
    assert "LEFT_BEHIND" not in os.environ
    assert headwise.Causal is causal
    assert sys.getrecursionlimit() == limit


def test_code_can_not_disturb_what_is_told_of_it(capfd) -> None:
    code = "import os, sys\nos.write(1, b'{}')\nsys.stderr.write('odd')\n"
    code += "print('\\ud800', torch.get_num_threads())"
    ran = run_lesson(lesson(code, "input()"), "guide")
    assert ran["b0"].output == "\\ud800 1\n"
    error = ran["b1"].error
    assert error is not None
    assert "EOFError" in str(error)
    assert capfd.readouterr() == ("", "")


def test_the_order_of_sets_depends_on_the_seed_of_hashes_alone() -> None:
    code = lesson("print({'query', 'key', 'value', 'head', 'mask', 'bias', 'scale'})")
    orders = [run_lesson(code, "guide", hash_seed=seed)["b0"].output for seed in (0, 1)]
    assert orders[0] != orders[1]


def test_code_that_did_not_change_is_not_run_again(monkeypatch) -> None:
    runs = []

    def counted(jobs, **more):
        runs.append(len(jobs))
        return run_jobs(jobs, **more)

    monkeypatch.setattr(code_module, "run_jobs", counted)
    monkeypatch.setattr(code_module, "_kept", {})
    same = lesson("import time\nprint(time.perf_counter_ns())")
    fails = msgspec.structs.replace(lesson("1 / 0"), id="fails")
    first = run_lessons([same, fails], "guide")
    again = run_lessons([same, fails], "guide")
    assert runs == [2, 1]  # what failed is tried again
    assert again["l"] == first["l"]
    run_lesson(same, "guide", hash_seed=1)
    run_lesson(lesson("print(5)"), "guide")
    assert runs == [2, 1, 1, 1]
    run_lesson(lesson(), "guide")  # nothing to run: no process
    assert runs == [2, 1, 1, 1]


def test_a_python_that_can_t_start_is_told(monkeypatch) -> None:
    monkeypatch.setattr(process.sys, "executable", "/bin/false")
    with pytest.raises(GuideError, match="can't be started: it said nothing"):
        run_lesson(lesson("print('unlike all others')"), "guide")
