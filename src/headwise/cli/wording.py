"""Tokens in a terminal's line: no commands to it, no direction that spills over, no wider than told."""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len, set_cell_size

from headwise.cli.errors import printable

ISOLATE, POP = "\u2068", "\u2069"
"""First strong isolate and its end (Unicode's bidirectional algorithm, UAX 9)."""


def is_right_to_left(text: str) -> bool:
    """Does any letter run from right to left?"""
    return any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in text)


def isolated(text: str) -> str:
    """The same text; where it holds letters that run from right to left, so marked that what stands
    around it keeps its place."""
    return f"{ISOLATE}{text}{POP}" if is_right_to_left(text) else text


def width(token: str) -> int:
    """Columns that a token takes."""
    return cell_len(printable(token))


def shown(token: str, room: int | None = None) -> str:
    """A token for the terminal, in at most `room` columns."""
    text = printable(token)
    if room is not None and cell_len(text) > room:
        text = set_cell_size(text, max(room - 1, 0)).rstrip() + "…"
    return isolated(text)


def shown_pair(query: str, key: str, *, arrow: str, room: int | None = None) -> str:
    """query → key in at most `room` columns; the longer one is cut first."""
    if room is None:
        return f"{shown(query)} {arrow} {shown(key)}"
    free = max(room - len(arrow) - 2, 2)
    first, second = width(query), width(key)
    if first + second > free:
        half = free // 2
        first = min(first, max(half, free - second))
        second = min(second, free - first)
    return f"{shown(query, first)} {arrow} {shown(key, second)}"
