"""What rests on what: where the guide uses each source, number and name of the library's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from headwise.study.content import Block, Deck, Guide, Lesson, Quiz, Visual, canonical
from headwise.study.render.fill import NAMED

_SYMBOL = re.compile(r"\]\(symbol:([\w.]+)\)")
_SOURCE = re.compile(r"\]\(source:([\w.]+)\)")


@dataclass(frozen=True)
class Place:
    """A block, question, card or visual.

    Attributes:
        name: its id within the activity; "" for the whole.
        body, file, line: the Markdown of a block without a title, and where it stands: how it begins tells it
            from others.
    """

    activity: str
    name: str
    title: str
    body: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Uses:
    """Places by the id of what they use."""

    sources: dict[str, list[Place]]
    facts: dict[str, list[Place]]
    symbols: dict[str, list[Place]]


def uses(guide: Guide) -> Uses:
    """Where everything is used, in teaching order."""
    made = Uses(defaultdict(list), defaultdict(list), defaultdict(list))
    for place, sources, texts, symbols in _all(guide):
        for text in texts:
            for match in NAMED.finditer(text):
                _add(made.facts[match["id"]], place)
            sources = [*sources, *map(canonical, _SOURCE.findall(text))]
            symbols = [*symbols, *_SYMBOL.findall(text)]
        for anchor in sources:
            _add(made.sources[anchor], place)
        for name in symbols:
            _add(made.symbols[name], place)
    return made


def _add(places: list[Place], place: Place) -> None:
    if place not in places:
        places.append(place)


def _place(lesson: Lesson, block: Block) -> Place:
    if block.title:
        return Place(lesson.id, block.id, f"{lesson.title}: {block.title}")
    if block.kind == "solution":  # how it begins might tell it
        return Place(lesson.id, block.id, f"{lesson.title}: a solution")
    return Place(lesson.id, block.id, lesson.title, block.body, lesson.file, block.body_line or block.line)


def _all(guide: Guide) -> Iterator[tuple[Place, list[str], list[str], list[str]]]:
    for activity in guide.activities.values():
        if isinstance(activity, Lesson):
            for block in activity.walk():
                place = _place(activity, block)
                yield place, block.sources, [block.title, block.body, block.reason], block.symbols
        elif isinstance(activity, Quiz):
            for number, question in enumerate(activity.questions, start=1):
                place = Place(activity.id, question.id, f"{activity.title}, question {number}")
                yield place, question.sources, [question.prompt], []
        elif isinstance(activity, Deck):
            for number, card in enumerate(activity.cards, start=1):
                place = Place(activity.id, card.id, f"{activity.title}, card {number}")
                yield place, card.sources, [card.front, card.back, card.text, card.why], []
        elif isinstance(activity, Visual):
            yield Place(activity.id, "", activity.title), activity.sources, [activity.words], []
