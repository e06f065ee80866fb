"""The paper that a guide rests on, and the places in it that the guide names."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

QUOTE_WORDS = 25  # the most that a guide quotes of one passage

AnchorKind = Literal[
    "section", "paragraph", "equation", "figure", "table", "list", "item", "footnote", "reference"
]
_SUFFIXED = re.compile(r"(?P<paragraph>(?:.*\.)?p[0-9]+)\.[0-9]+")


def canonical(anchor: str) -> str:
    """The one id of a place: LaTeXML's converters end the id of a paragraph with different numbers
    (S3.SS2.SSS2.p1.6 and S3.SS2.SSS2.p1.1), which all mean S3.SS2.SSS2.p1. What lies within a place (a row
    of a table, a formula of a paragraph) is no place: a guide names the place, and keeps its own ids so.

    A search (static/finding.js) finds a place by all these ids, and by those of what lies within it."""
    found = _SUFFIXED.fullmatch(anchor)
    return found["paragraph"] if found else anchor


class Paper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paper of a guide.

    Attributes:
        html: address of its page; places in it are `html#anchor`, so no slash ends it.
    """

    title: str
    authors: str
    year: int
    arxiv: str = ""
    html: str = ""

    def url(self, anchor: str) -> str:
        """The address of a place of the paper; "" where the guide gives no page."""
        return f"{self.html.rstrip('/')}#{anchor}" if self.html else ""


class Anchor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place of the paper's page. No text of it.

    Attributes:
        parent: the id of what it stands in; None at the top.
        formulas: how many inline formulas it holds; converters make a paragraph's suffix of that.
        label: what a reader calls it: "3.2.2, paragraph 1", "equation 1", "table 3".
        sha256: of the passage without spaces and mathematics (see `headwise study verify`), where an author
            recorded it.
    """

    id: str = ""
    kind: AnchorKind
    parent: str | None = None
    formulas: int = 0
    label: str = ""
    sha256: str | None = None


class Anchors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """anchors.json: the paper's name and all places of its page."""

    paper: str
    anchors: dict[str, Anchor]


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of sources.toml.

    Attributes:
        about: what the passage says, in the guide's own words.
        quote: its words, at most `QUOTE_WORDS` of them; "" for none.
    """

    about: str
    quote: str = ""


class Source(SourceEntry, frozen=True, kw_only=True):
    """A passage that the guide rests on.

    Attributes:
        id: of the anchor, without a converter's suffix.
        kind, label: of the anchor.
        url: its place in the paper's page.
        line: in sources.toml.
    """

    id: str
    kind: str
    label: str
    url: str
    line: int = 0
