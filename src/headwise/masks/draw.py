"""A mask drawn in characters."""

from __future__ import annotations

import unicodedata
from typing import Any

from headwise.masks.base import Mask, Tile
from headwise.masks.picture import picture

SIGNS = {Tile.FULL: "■", Tile.PARTIAL: "◧", Tile.EMPTY: "·"}
ASCII_SIGNS = {Tile.FULL: "#", Tile.PARTIAL: "+", Tile.EMPTY: "."}
LONGEST_LABEL = 12


def draw(mask: Mask, q_len: int | None = None, k_len: int | None = None, *, ascii: bool = False,
         **options: Any) -> str:  # fmt: skip
    """The mask as text: queries down, keys across, key labels read downwards.

    The signs differ in shape, not in colour alone: ■ may attend, ◧ some of it (pooled cells and partial
    tiles), · may not; with `ascii`, # + and . instead.

    Args and errors: as for `headwise.masks.picture.picture`.
    """
    shown = picture(mask, q_len, k_len, **options)
    signs = ASCII_SIGNS if ascii else SIGNS
    q_labels = [_label(text, ascii) for text in shown.q_labels]
    k_labels = [_label(text, ascii) for text in shown.k_labels]
    margin = max((_width(text) for text in q_labels), default=0)
    lines = [_printable(shown.title, ascii)]
    lines += [f"{' ' * margin}  {line}" for line in _downwards(k_labels)]
    for label, row in zip(q_labels, shown.cells, strict=True):
        lines.append(f"{' ' * (margin - _width(label))}{label}  {' '.join(signs[cell] for cell in row)}")
    if not shown.q_labels or not shown.k_labels:
        lines.append("(no pairs)")
    lines.append(
        "rows: queries; columns: keys; " + ", ".join(f"{signs[c]} {shown.words[c]}" for c in shown.used())
    )
    if shown.note:
        lines.append(_printable(shown.note, ascii))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _downwards(labels: list[str]) -> list[str]:
    """Labels written from top to bottom, ending at the bottom; each takes two columns of text."""
    columns = [_letters(label) for label in labels]
    height = max((len(column) for column in columns), default=0)
    lines = []
    for i in range(height):
        letters = [
            column[i - height + len(column)] if i >= height - len(column) else " " for column in columns
        ]
        lines.append("".join(letter if _width(letter) > 1 else f"{letter} " for letter in letters))
    return lines


def _letters(text: str) -> list[str]:
    """Letters, each with the marks that stand on it."""
    letters: list[str] = []
    for char in text:
        if letters and _width(char) == 0:
            letters[-1] += char
        else:
            letters.append(char)
    return letters


def _label(text: str, ascii: bool) -> str:
    text = _printable(text, ascii)
    letters = _letters(text)
    if len(letters) > LONGEST_LABEL:
        letters = [*letters[: LONGEST_LABEL - 1], "~" if ascii else "…"]
    return "".join(letters)


def _printable(text: str, ascii: bool) -> str:
    """Line breaks and other control characters as their escapes, which keep the grid straight."""
    clean = "".join(repr(char)[1:-1] if unicodedata.category(char)[0] == "C" else char for char in text)
    return clean.encode("ascii", "backslashreplace").decode() if ascii else clean


def _width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
