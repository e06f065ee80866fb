"""A guide held against the author's own copy of the paper's page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from headwise.study.content import Anchor, Guide
from headwise.study.content.anchors_file import written_anchors
from headwise.study.errors import GuideError
from headwise.study.paper.new import anchors_of
from headwise.study.paper.page import Page
from headwise.study.paper.plain import holds, plain_text
from headwise.training.files import replace_file


@dataclass(frozen=True)
class Comparison:
    """What differs between a guide and a page. Where something is wrong, it is told by file and line.

    Attributes:
        same: places whose passage is as recorded.
        changed: places whose passage has other words than when it was recorded.
        missing: places that anchors.json has and the page hasn't.
        moved: places of another kind than anchors.json says.
        new: places that the page has and anchors.json hasn't.
        unrecorded: places with words but without a recorded hash.
        quotes: quotes that their passage doesn't hold, by source.
        paper: whether the page is that of another paper or version.
    """

    same: list[str] = field(default_factory=list)
    changed: dict[str, GuideError] = field(default_factory=dict)
    missing: dict[str, GuideError] = field(default_factory=dict)
    moved: dict[str, GuideError] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    quotes: dict[str, GuideError] = field(default_factory=dict)
    paper: list[GuideError] = field(default_factory=list)

    def errors(self, *, accept: bool = False) -> list[GuideError]:
        """Everything that makes the guide untrue to the page, by file and line.

        Args:
            accept: the passages of the page are accepted as they are now.
        """
        groups = (self.missing, self.moved, self.quotes, {} if accept else self.changed)
        found = [*self.paper, *(error for group in groups for error in group.values())]
        return sorted(found, key=lambda error: (error.file, error.line))


def compare(guide: Guide, page: Page) -> Comparison:
    """Compare a guide's places, hashes and quotes with a page."""
    found = Comparison()
    file = str(guide.folder / "anchors.json")
    lines = _lines(guide)
    wanted = guide.paper.arxiv
    if wanted and page.arxiv and page.arxiv not in (wanted, wanted.partition("v")[0]):
        message = f"the page is {page.arxiv}, but the guide is about {wanted}: save that version's page"
        found.paper.append(GuideError(message, str(guide.folder / "guide.toml"), 1))
    for name, anchor in guide.anchors.items():
        passage, line = page.passages.get(name), lines.get(name, 1)
        if passage is None:
            found.missing[name] = GuideError(f"the page has no {name} ({anchor.label})", file, line)
            continue
        if passage.kind != anchor.kind:
            message = f"{name} is a {passage.kind} of the page, and a {anchor.kind} here"
            found.moved[name] = GuideError(message, file, line)
        if anchor.sha256 is None:
            if passage.plain:
                found.unrecorded.append(name)
        elif anchor.sha256 == passage.sha256:
            found.same.append(name)
        else:
            message = f"{name} ({anchor.label}) has other words than when it was recorded: read it again"
            found.changed[name] = GuideError(message, file, line)
    found.new.extend(name for name in page.passages if name not in guide.anchors)
    for source in guide.sources.values():
        if source.quote and source.id in page.passages and not holds(_text(page, source.id), source.quote):
            message = f"{source.id}: the passage doesn't hold the quote {source.quote!r}"
            found.quotes[source.id] = GuideError(message, str(guide.folder / "sources.toml"), source.line)
    return found


def record(guide: Guide, page: Page) -> int:
    """Write the hashes of the page's passages into anchors.json, and tell how many were new or others. Places
    that the page hasn't keep what they have.

    Raises:
        GuideError: the file can't be written.
    """
    fresh = anchors_of(page)
    anchors: dict[str, Anchor] = {}
    count = 0
    for name, anchor in guide.anchors.items():
        passage = page.passages.get(name)
        if passage is not None:
            count += anchor.sha256 != passage.sha256
            anchor = msgspec.structs.replace(anchor, sha256=passage.sha256, formulas=fresh[name].formulas)
        anchors[name] = anchor
    path = guide.folder / "anchors.json"
    try:
        replace_file(path, written_anchors(guide.paper.arxiv, anchors).encode())
    except OSError as error:
        raise GuideError(f"this can't be written: {error.strerror}", str(path)) from None
    return count


def _text(page: Page, name: str) -> str:
    """The words of a passage in their plain form, with those of what stands in it."""
    passage = page.passages[name]
    if passage.kind == "equation":
        return plain_text("".join(passage.words))
    parts = [passage.plain]
    parts += [one.plain for one in page.passages.values() if one.parent == name and one.kind != "equation"]
    return "".join(parts)


def _lines(guide: Guide) -> dict[str, int]:
    """The line of each place in anchors.json."""
    text = (guide.folder / "anchors.json").read_text(encoding="utf-8")
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*"([^"]+)":', line):
            found.setdefault(match[1], number)
    return found
