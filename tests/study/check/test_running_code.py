"""Code that a guide shows: run as a learner would, and the same every time."""

from __future__ import annotations

import pytest
import torch

from headwise.study.content import Question
from headwise.study.content.directives import Blocks
from headwise.study.content.lesson import Lesson
from headwise.study.errors import GuideError
from headwise.study.running import run_lesson, shape_of


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
