"""The pages that list what a guide rests on: sources, numbers, the library's parts; and answers, versions."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from headwise.study.content import Guide, Quiz
from headwise.study.content.facts import Fact
from headwise.study.keys import Key, shown_options
from headwise.study.render.maker import Maker, plain
from headwise.study.render.pages import Pages, Version
from headwise.study.render.reading import ReadMaths
from headwise.study.render.uses import Place, Uses
from headwise.study.render.views import Link

_TOP = re.compile(r"(S\d+|A\d+|Sx\d+|bib|footnote|[a-z]+)")
OPENING = 7
"""Words of a block without a title that stand for one."""
_NAMES = {"abstract": "Abstract", "bib": "References", "footnote": "Footnotes", "p": "Front matter"}


class Indexes:
    """Makes those pages.

    Args:
        maker: of pages one folder below the front page.
        used: where the guide uses what.
    """

    def __init__(self, guide: Guide, pages: Pages, maker: Maker, used: Uses) -> None:
        self.guide = guide
        self._pages = pages
        self._maker = maker
        self._used = used
        self._reader = Maker(guide, maths=ReadMaths())  # formulas as one types them

    def _links(self, places: list[Place]) -> list[Link]:
        """Links whose texts differ, also where places have the same title."""
        texts = [self._named(one) for one in places]
        numbered = [
            f"{text} ({texts[: place + 1].count(text)})" if texts.count(text) > 1 else text
            for place, text in enumerate(texts)
        ]
        return [
            Link(text, f"../{one.activity}/" + (f"#{one.name}" if one.name else ""))
            for text, one in zip(numbered, places, strict=True)
        ]

    def _named(self, place: Place) -> str:
        title = plain(self._maker.inline(place.title, links=False))
        words = plain(self._reader.text(place.body, place.file, place.line)).split() if place.body else []
        begins = " ".join(words[:OPENING]) + (" …" if len(words) > OPENING else "")
        return f"{title}: “{begins}”" if begins else title

    def sources(self) -> str:
        """Every source, in the paper's order."""
        order = {name: place for place, name in enumerate(self.guide.anchors)}
        groups: dict[str, list[dict[str, Any]]] = {}
        for source in sorted(self.guide.sources.values(), key=lambda one: order.get(one.id, len(order))):
            entry = {
                "view": self._maker.source(source.id),
                "about": self._maker.inline(source.about, "sources.toml", source.line),
                "places": self._links(self._used.sources.get(source.id, [])),
            }
            groups.setdefault(self._group(source.id), []).append(entry)
        return self._pages.fill(
            "sources",
            "Sources",
            here="sources/",
            groups=[{"title": title, "list": listed} for title, listed in groups.items()],
        )

    def _group(self, anchor: str) -> str:
        found = _TOP.match(anchor)
        top = found[1] if found else anchor
        if top in _NAMES:
            return _NAMES[top]
        label = self.guide.anchors[top].label if top in self.guide.anchors else top
        return label[:1].upper() + label[1:]

    def numbers(self) -> str:
        """Every fact that the guide has."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for fact in self.guide.facts.values():
            name = fact.id.partition(".")[0].replace("_", " ")
            name = re.sub(r"(?<=[a-z])(?=\d)", " ", name)
            groups.setdefault(name[:1].upper() + name[1:], []).append(
                {
                    "fact": fact,
                    "call": _call(fact),
                    "sources": [self._maker.source(one) for one in fact.sources if one in self.guide.sources],
                    "places": self._links(self._used.facts.get(fact.id, [])),
                }
            )
        return self._pages.fill(
            "numbers",
            "Numbers",
            here="numbers/",
            groups=[{"title": title, "list": listed} for title, listed in groups.items()],
        )

    def library(self) -> str:
        """The library's parts that the guide speaks of."""
        listed = [
            {
                "view": self._maker.symbol(name, places[0].activity, 0),
                "places": self._links(places),
            }
            for name, places in sorted(self._used.symbols.items())
        ]
        return self._pages.fill("library", "Library", here="library/", symbols=listed)

    def search(self) -> str:
        return self._pages.fill("search", "Search", here="search/", scripts=["search.js"])

    def progress(self) -> str:
        return self._pages.fill(
            "progress",
            "Progress",
            here="progress/",
            deck=self._pages.deck("../"),
            parts=self._pages.parts("../"),
        )

    def versions(self, versions: list[Version]) -> str:
        """Every published version, the newest first."""
        listed = sorted(versions, key=lambda one: one.number, reverse=True)
        return self._pages.fill("versions", "Versions", here="versions/", versions=listed)

    def answers(self, keys: dict[str, Key]) -> str:
        """Every question with its answer, for readers without scripts."""
        quizzes = []
        for quiz in self.guide.activities.values():
            if isinstance(quiz, Quiz):
                listed = [self._answer(quiz, place, keys) for place in range(len(quiz.questions))]
                quizzes.append({"id": quiz.id, "title": quiz.title, "list": listed})
        return self._pages.fill("answers", "Answers", here="answers/", quizzes=quizzes)

    def _answer(self, quiz: Quiz, place: int, keys: dict[str, Key]) -> dict[str, Any]:
        question = quiz.questions[place]
        key = keys[question.id]
        whys = []
        if question.options:
            for (_, option), told in zip(shown_options(question), key["options"], strict=True):
                whys.append(
                    {
                        "verdict": "Right" if told["correct"] else "Wrong",
                        "text": self._maker.inline(option.text, quiz.file, question.line),
                        "why": Markup(told["why"]),  # our own rendering
                    }
                )
        return {
            "id": question.id,
            "prompt": self._maker.question(question, quiz.file).first,
            "right": Markup(key["right"]),
            "whys": whys,
            "explain": Markup(key["explain"]),
        }


def _call(fact: Fact) -> str:
    """How a computed fact is computed: attention_parameters(d_model=512, num_heads=8)."""
    if not fact.function:
        return ""
    given = ", ".join(f"{name}={value!r}" for name, value in fact.arguments.items())
    return f"{fact.function}({given})"
