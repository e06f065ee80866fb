"""A lesson's text, cut into its blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import get_args

from headwise.study.content.lesson import Block, BlockKind
from headwise.study.content.sources import canonical
from headwise.study.errors import GuideError

KINDS = get_args(BlockKind)
COMMON = ("sources", "reason", "quote", "title")
NEEDED: dict[str, tuple[str, ...]] = {
    "detail": ("symbol",),
    "later": ("link", "link-title"),
    "visual": ("visual",),
    "check": ("question",),
}

_OPEN = re.compile(r"(?P<colons>:{3,})\{(?P<kind>[^}]*)\}(?P<rest>.*)")
_CLOSE = re.compile(r"(?P<colons>:{3,})\s*")
_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<info>.*)")
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ATTRIBUTE = re.compile(
    r"\s*(?:#(?P<id>\S+)|(?P<key>[a-z][a-z-]*)=(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s\"]+)))(?=\s|$)"
)


@dataclass
class _Opened:
    """A block whose end isn't read yet."""

    kind: str
    colons: int
    line: int
    attributes: dict[str, str]
    lines: list[str] = field(default_factory=list)
    first: int = 0  # the line of the file that `lines` begins at
    children: list[Block] = field(default_factory=list)


class Blocks:
    """Cuts a lesson into blocks.

    Everything stands inside a block, which begins with `:::{kind} #id key="value"` and ends with as many
    colons. Only an exercise holds another block, its solution, and then has more colons.

    Args:
        text: of the lesson, without its front matter.
        name: of the file, for errors.
        first: the line of the file that the text begins at.
    """

    def __init__(self, text: str, name: str, *, first: int = 1) -> None:
        self.name = name
        self.blocks: list[Block] = []
        self.errors: list[GuideError] = []
        self._open: list[_Opened] = []
        fence: str | None = None
        fence_line = first
        stray = False
        for number, line in enumerate(text.splitlines(), start=first):
            marks = _FENCE.fullmatch(line)
            if fence is not None:
                if marks and marks["marks"].startswith(fence) and not marks["info"].strip():
                    fence = None
            elif marks and self._open:
                fence, fence_line = marks["marks"], number
            elif opened := _OPEN.fullmatch(line.rstrip()):
                self._begin(opened, number)
                stray = False
                continue
            elif closed := _CLOSE.fullmatch(line):
                self._end(len(closed["colons"]), number)
                continue
            elif line.startswith(":::"):
                self._wrong('a block begins like :::{explain} #id sources="S3.p1" and ends with :::', number)
                continue
            if self._open:
                self._open[-1].lines.append(line)
            elif line.strip() and not stray:
                stray = True
                self._wrong(
                    'this text stands in no block: put it into one, like :::{explain} #id sources="S3.p1"',
                    number,
                )
        if fence is not None:
            self._wrong(f"this code has no end: write {fence} under it", fence_line)
            return
        for left in self._open:
            self._unclosed(left)

    def _unclosed(self, block: _Opened) -> None:
        self._wrong(f"the block {block.kind} has no end: close it with {':' * block.colons}", block.line)

    def _wrong(self, message: str, line: int) -> None:
        self.errors.append(GuideError(message, self.name, line))

    def _begin(self, opened: re.Match[str], line: int) -> None:
        kind, colons = opened["kind"].strip(), len(opened["colons"])
        if kind not in KINDS:
            self._wrong(f"there is no block {{{kind}}}: the kinds are {', '.join(KINDS)}", line)
        while self._open and colons >= self._open[-1].colons:
            if kind == "solution" and self._open[-1].kind == "exercise":
                break
            self._unclosed(self._open[-1])  # a block of its own begins: the one before was meant to end
            self._close()
        outer = self._open[-1] if self._open else None
        if outer is not None:
            if kind != "solution" or outer.kind != "exercise":
                self._wrong(
                    f"{{{kind}}} stands inside {{{outer.kind}}} of line {outer.line}: only an exercise holds "
                    f"a block, its solution",
                    line,
                )
            elif colons >= outer.colons:
                self._wrong(
                    f"the exercise of line {outer.line} needs more colons than its solution: give it "
                    f"{colons + 1} or more",
                    line,
                )
        elif kind == "solution":
            self._wrong("a solution stands inside its exercise", line)
        self._open.append(_Opened(kind, colons, line, self._attributes(opened["rest"], line), first=line + 1))

    def _attributes(self, text: str, line: int) -> dict[str, str]:
        found: dict[str, str] = {}
        place, text = 0, text.rstrip()
        while place < len(text):
            match = _ATTRIBUTE.match(text, place)
            if match is None:
                self._wrong(f'{text[place:].strip()!r} is neither #id nor key="value"', line)
                break
            place = match.end()
            key, value = "#", match["id"]
            if value is None:
                key = match["key"]
                value = match["bare"]
                if value is None:
                    value = re.sub(r"\\(.)", r"\1", match["quoted"])
            if key in found:
                self._wrong(f"{key} is given twice", line)
            found[key] = value
        return found

    def _end(self, colons: int, line: int) -> None:
        if not self._open:
            self._wrong("this closes a block, but none is open", line)
            return
        while colons != self._open[-1].colons and any(one.colons == colons for one in self._open):
            self._unclosed(self._open[-1])
            self._close()
        block = self._open[-1]
        if colons != block.colons:
            self._wrong(
                f"{colons} colons close the {block.kind} of line {block.line}, which has {block.colons}", line
            )
        self._close()

    def _close(self) -> None:
        made = self._made(self._open.pop())
        if self._open:
            self._open[-1].children.append(made)
        else:
            self.blocks.append(made)

    def _made(self, block: _Opened) -> Block:
        given = dict(block.attributes)
        name = given.pop("#", "")
        if not name and block.kind == "solution" and self._open:
            name = f"{self._open[-1].attributes.get('#', 'exercise')}-solution"
        if not name:
            self._wrong(f"the block {block.kind} has no id: give it #some-name", block.line)
        elif not _ID.fullmatch(name):
            self._wrong(
                f"#{name} is no id: small letters, digits, and single hyphens between them", block.line
            )
        needed = NEEDED.get(block.kind, ())
        for key in given:
            if key not in COMMON and key not in needed:
                rule = ", ".join((*COMMON, *needed))
                self._wrong(f"{{{block.kind}}} has no {key}: it may have {rule}", block.line)
        for key in needed:
            if not given.get(key, "").strip():
                self._wrong(f'{{{block.kind}}} needs {key}="..."', block.line)
        lines, first = block.lines, block.first
        while lines and not lines[0].strip():
            lines, first = lines[1:], first + 1
        sources = [canonical(one) for one in given.pop("sources", "").split() if one != "none"]
        reason = given.pop("reason", "")
        if block.kind == "solution" and not sources and not reason and self._open:
            outer = self._open[-1].attributes
            sources = [canonical(one) for one in outer.get("sources", "").split() if one != "none"]
            reason = outer.get("reason", "")
        quote = given.pop("quote", "")
        return Block(
            kind=block.kind,  # type: ignore[arg-type]  # an unknown one is among the errors
            id=name,
            title=given.pop("title", ""),
            sources=sources,
            reason=reason,
            quote=canonical(quote),
            options=given,
            body="\n".join(lines).rstrip(),
            line=block.line,
            body_line=first,
            children=block.children,
        )
