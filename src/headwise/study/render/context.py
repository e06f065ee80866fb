"""What a piece of Markdown is rendered within."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwise.study.content import Guide
from headwise.study.errors import GuideError
from headwise.study.maths import Maths


@dataclass(frozen=True)
class Context:
    """Where a text stands.

    Attributes:
        root: from its page to the guide's front page: "" or "../".
        file, line: where the text begins, for errors.
        links: whether numbers lead to where they come from, and links work. Not within headings, labels and
            other links.
        printed: what the Python code in it prints, shown below the last piece of it.
    """

    guide: Guide
    maths: Maths
    root: str = "../"
    file: str = ""
    line: int = 1
    links: bool = True
    printed: str = ""

    def at(self, file: str, line: int) -> Context:
        return replace(self, file=file, line=line)

    def plain(self) -> Context:
        """The same without links."""
        return replace(self, links=False)

    def error(self, message: str, line: int | None = None) -> GuideError:
        return GuideError(message, self.file, self.line if line is None else line)
