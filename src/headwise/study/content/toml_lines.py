"""Where the tables and keys of a TOML text stand, since Python's reader doesn't tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(?P<open>\[\[?)(?P<keys>[^\[\]\"']*(?:(?:\"[^\"]*\"|'[^']*')[^\[\]\"']*)*)\]")
_KEY = re.compile(r"\s*(?P<keys>(?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")
_TOKEN = re.compile(r"\"\"\"|'''|\\.|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#|[\[\]{}]")


class TomlLines:
    """The line of every table, of every table of an array, and of every key of a TOML text.

    The text is one that Python's reader accepts. A path is what leads to a value in what that reader gives:
    ("questions", 2, "options", 0, "text"). Tables and arrays written within one value have its line.
    """

    def __init__(self, text: str, *, first: int = 1) -> None:
        self.first = first
        self._lines: dict[Path, int] = {}
        counts: dict[Path, int] = {}
        here: Path = ()
        strings: str | None = None  # the quotes of a string of several lines that is open
        depth = 0  # of brackets that a value left open
        for number, line in enumerate(text.splitlines(), start=first):
            if strings is None and depth == 0:
                if header := _HEADER.match(line):
                    here = _resolved(_parts(header["keys"]), counts, array=header["open"] == "[[")
                    self._lines.setdefault(here, number)
                    continue
                if key := _KEY.match(line):
                    path = here
                    for part in _parts(key["keys"]):
                        path = (*path, part)
                        self._lines.setdefault(path, number)
                    line = line[key.end() :]
                elif not line.strip() or line.lstrip().startswith("#"):
                    continue
            strings, depth = _after(line, strings, depth)

    def __getitem__(self, path: Sequence[str | int]) -> int:
        """The line of the value at this path, or of the nearest thing around it."""
        path = tuple(path)
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return self.first


def _parts(keys: str) -> list[str]:
    return [double or single or bare for double, single, bare in _PART.findall(keys)]


def _resolved(parts: list[str], counts: dict[Path, int], *, array: bool) -> Path:
    """A header's path with the number of each array's newest table in it."""
    path: Path = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        last = index == len(parts) - 1
        if last and array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _after(line: str, strings: str | None, depth: int) -> tuple[str | None, int]:
    """Which string of several lines is open after this line, and how many brackets."""
    place = 0
    while place < len(line):
        if strings is not None:
            end = line.find(strings, place)
            while end > 0 and strings == '"""' and _escaped(line, end):
                end = line.find(strings, end + 1)
            if end < 0:
                return strings, depth
            place, strings = end + 3, None
            continue
        token = _TOKEN.search(line, place)
        if token is None or token[0] == "#":
            break
        place = token.end()
        if token[0] in ('"""', "'''"):
            strings = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return strings, depth


def _escaped(line: str, place: int) -> bool:
    before = line[:place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
