"""docs/observing.md: its code runs from top to bottom, and it leaves no observer out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from headwise import observers

PAGE = Path(__file__).parents[2] / "docs" / "observing.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = [
    (TEXT[: match.start()].count("\n") + 2, match[1])
    for match in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
]


def test_the_code_runs(capsys):
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for line, code in BLOCKS:
        exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)  # errors name the page's line
    assert "Observations(entropy: [2, 4, 64], top_keys[8]:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in observers.__all__
        if isinstance(getattr(observers, name), type)
        and issubclass(getattr(observers, name), observers.Observer)
        and name != "Observer"
    ],
)
def test_every_observer_is_in_the_table_and_in_code(name):
    assert re.search(rf"^\| \[`{name}\(.*\)`\]", TEXT, re.MULTILINE)
    assert any(re.search(rf"hw\.{name}\(", code) for _, code in BLOCKS)


def test_links_within_the_page_lead_somewhere():
    headings = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", TEXT)) <= headings
