"""The words of a page's HTML as one reads them: for search and the excerpts that it shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser

BLOCKS = frozenset(
    ("p", "div", "li", "ul", "ol", "dl", "dt", "dd", "pre", "table", "caption", "figure", "figcaption", "br")
) | frozenset(("blockquote", "h1", "h2", "h3", "h4", "h5", "h6"))
SENTENCES = frozenset(("li", "dd", "figure", "table"))
"""What ends as a sentence does, even where its writer put no full stop: a list's items don't run on."""
_ENDED = re.compile(r"[.:;!?,…][\W_]*$")


def words(html: str) -> str:
    """The words of HTML in one line. Cells of a table stand apart by |, its rows by ;, and code keeps its
    letters together."""
    reader = _Words()
    reader.feed(str(html))  # of Markup, letters added to it would be escaped again
    reader.close()
    return " ".join(reader.text.split())


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self._before = ""  # what goes before the next cell
        self._head = False  # within a heading of a table
        self._unseen = False  # within its words for screen readers, which say its formula again

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen = self._head and ("class", "unseen") in attrs
        if tag == "table":
            self._before = ""
        elif tag == "tr":
            self._before = self._before and "; "
        elif tag in ("td", "th"):
            self.text = (self.text.rstrip() + self._before) if self._before else self.text
            self._before, self._head = " | ", tag == "th"
        if tag in BLOCKS:
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        self._unseen = False
        if tag == "th":
            self._head = False
        if tag in SENTENCES and self.text.strip() and not _ENDED.search(self.text):
            self.text = self.text.rstrip() + "."
        if tag in BLOCKS:
            self.text += " "

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.text += data
