"""The code in a block's Markdown, and its text without code."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})\s*(?P<info>[^`]*)")
_INLINE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")


class Fence(NamedTuple):
    """A fenced piece of code.

    Attributes:
        language: the first word after the opening marks; "" for none.
        code: its lines.
        line: of the first of them.
    """

    language: str
    code: str
    line: int


def fences(body: str, first: int = 1) -> list[Fence]:
    """The fenced code of a text that begins at line `first`."""
    found: list[Fence] = []
    marks, language, start = "", "", 0
    lines: list[str] = []
    for number, line in enumerate(body.splitlines(), start=first):
        match = _FENCE.fullmatch(line)
        if marks:
            if match and match["marks"].startswith(marks) and not match["info"].strip():
                found.append(Fence(language, "\n".join(lines), start))
                marks = ""
            else:
                lines.append(line)
        elif match:
            marks, lines, start = match["marks"], [], number + 1
            language = (match["info"].split() or [""])[0]
    return found


def without_code(body: str, *, inline: bool = True) -> str:
    """The text with as many lines, where fences are empty; `inline`: and what stands between backticks."""
    kept: list[str] = []
    marks = ""
    for line in body.splitlines():
        match = _FENCE.fullmatch(line)
        if marks:
            if match and match["marks"].startswith(marks) and not match["info"].strip():
                marks = ""
            kept.append("")
        elif match:
            marks = match["marks"]
            kept.append("")
        else:
            kept.append(_INLINE.sub(lambda code: " " * len(code[0]), line) if inline else line)
    return "\n".join(kept)
