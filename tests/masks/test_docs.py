"""docs/masks.md shows what its code prints, word for word."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from headwise.masks import Window

PAGE = Path(__file__).parents[2] / "docs" / "masks.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, flags=re.S)


def test_every_example_prints_what_the_page_shows() -> None:
    assert len(EXAMPLES) == TEXT.count("```python")
    names: dict[str, Any] = {}
    for code, shown in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue().rstrip() == shown.rstrip(), code


def test_every_converter_is_in_the_table() -> None:
    converters = {name for name in vars(Window) if name.startswith("from_")}
    assert converters == set(re.findall(r"`Window\.(from_\w+)\(", TEXT))


@pytest.mark.parametrize(
    "row", re.findall(r"^\| .* \| ([W\d+ ]+) \| `(Window\.from_.*?)` \|$", TEXT, flags=re.M)
)
def test_the_table_of_windows_counts_right(row: tuple[str, str]) -> None:
    count, code = row
    width = 5
    window = eval(code, {"Window": Window, "W": width})
    expected = {"W": width, "W + 1": width + 1, "2 W + 1": 2 * width + 1}[count]
    assert 1 + window.before + window.after == expected
