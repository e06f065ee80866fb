"""Lessons, and the blocks they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from headwise.study.content.listed import Listed, Titled

BlockKind = Literal[
    "explain",
    "detail",
    "later",
    "simplified",
    "trap",
    "loose",
    "code",
    "visual",
    "check",
    "exercise",
    "solution",
    "summary",
]


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a lesson.

    Attributes:
        id: unique in the lesson; a solution without one has its exercise's, with "-solution".
        sources: the places it rests on; `reason` says why, where there are none. A solution without either
            has its exercise's.
        quote: the source whose quote is shown; "" for none.
        options: what else its first line gives: symbol, link, link-title, visual, question.
        body: Markdown; facts are not filled in yet.
        line, body_line: of its first line, and of the body's.
        children: the solutions of an exercise; they come after its body.
    """

    kind: BlockKind
    id: str
    title: str = ""
    sources: list[str] = []
    reason: str = ""
    quote: str = ""
    options: dict[str, str] = {}
    body: str = ""
    line: int = 0
    body_line: int = 0
    children: list[Block] = []

    @property
    def symbols(self) -> list[str]:
        """The names of the library's that a `detail` shows."""
        return self.options.get("symbol", "").split()


class FrontMatter(Titled, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands between the +++ lines of a lesson."""

    goals: list[str] = msgspec.field(default_factory=list)
    type: Literal["lesson"] = "lesson"


class Lesson(Listed, frozen=True, kw_only=True):
    """A lesson. `goals` is what a learner can do afterwards."""

    blocks: list[Block]
    goals: list[str] = msgspec.field(default_factory=list)
    type: Literal["lesson"] = "lesson"

    def walk(self) -> Iterator[Block]:
        """Every block, with those inside of others, in reading order."""
        for block in self.blocks:
            yield block
            yield from block.children

    def places(self) -> list[str]:
        return [block.id for block in self.walk()]
