"""Where the values of a guide's file stand: of a TOML file, or of the front matter of a lesson."""

from __future__ import annotations

from pathlib import Path

from headwise.study.content.lesson_file import front_matter
from headwise.study.content.toml_lines import TomlLines


class FileLines:
    """The lines of a file's values; a file that isn't there has none, and all is at line 1.

    Attributes:
        file: the file's name, as errors have it.
    """

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        self._first = 1
        if path.suffix == ".md":
            text, self._first = front_matter(text), 2  # after the line that opens it
        self._lines = TomlLines(text, first=self._first)
        self._written = text.splitlines()

    def key(self, *place: str | int) -> int:
        """The line of what stands at a place."""
        return self._lines[place]

    def text(self, *place: str | int) -> int:
        """The line at which a text begins: of a string of several lines, that of its first."""
        line = self._lines[place]
        index = line - self._first
        written = self._written[index].rstrip() if index < len(self._written) else ""
        return line + 1 if written.endswith(('= """', "= '''")) else line

    def item(self, text: str, *place: str | int) -> int:
        """The line of a list's item."""
        line = self.text(*place)
        start = text.split("\\")[0].split('"')[0][:30]
        for number in range(line, self._first + len(self._written)):
            if start in self._written[number - self._first]:
                return number
        return line
