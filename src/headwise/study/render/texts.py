"""Every text of a guide that is Markdown, with the line it begins at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from headwise.study.content import Activity, Deck, Guide, Lesson, Quiz, Resources, Visual
from headwise.study.content.file_lines import FileLines
from headwise.study.maths import Maths
from headwise.study.render.markdown import to_html


@dataclass(frozen=True)
class Text:
    """A Markdown text.

    Attributes:
        file, line: where it begins.
        inline: it is one paragraph, like a title.
        external: it may link to pages outside of the guide.
        scope: the activity it belongs to; "" for none.
        block: the kind of the lesson's block whose body it is; "" for any other text.
    """

    text: str
    file: str
    line: int
    inline: bool = True
    external: bool = False
    scope: str = ""
    block: str = ""

    def to_html(self, guide: Guide, maths: Maths | None = None) -> Markup:
        return to_html(self.text, guide, maths=maths, file=self.file, line=self.line, inline=self.inline)


def all_texts(guide: Guide) -> Iterator[Text]:
    """Every text, those of activities in teaching order."""
    for text in _all(guide):
        if text.text.strip():
            yield text


def _all(guide: Guide) -> Iterator[Text]:
    main = FileLines(guide.folder / "guide.toml")
    yield Text(guide.title, main.file, main.text("title"))
    yield Text(guide.intro, main.file, main.text("intro"), inline=False)
    for number, part in enumerate(guide.parts):
        yield Text(part.title, main.file, main.text("parts", number, "title"))
        yield Text(part.intro, main.file, main.text("parts", number, "intro"), inline=False)
    for activity in guide.activities.values():
        yield from _of(activity, guide.folder / activity.file)
    sources = FileLines(guide.folder / "sources.toml")
    for source in guide.sources.values():
        yield Text(source.about, sources.file, sources.text(source.id, "about"))
    facts = FileLines(guide.folder / "facts.toml")
    for fact in guide.facts.values():
        yield Text(fact.reason, facts.file, facts.text(fact.id, "reason"))
        yield Text(fact.unit, facts.file, facts.text(fact.id, "unit"))


def _of(activity: Activity, path: Path) -> Iterator[Text]:
    name = activity.id
    if isinstance(activity, Lesson):
        yield from _lesson(activity, path)
        return
    lines = FileLines(path)

    def at(text: str, *place: str | int, inline: bool = False, external: bool = False) -> Text:
        return Text(text, lines.file, lines.text(*place), inline=inline, external=external, scope=name)

    yield at(activity.title, "title", inline=True)
    yield at(activity.summary, "summary", inline=True)
    if isinstance(activity, Quiz):
        for number, question in enumerate(activity.questions):
            here = ("questions", number)
            yield at(question.prompt, *here, "prompt")
            yield at(question.explain, *here, "explain")
            yield at(question.reason, *here, "reason", inline=True)
            for place, option in enumerate(question.options):
                yield at(option.text, *here, "options", place, "text")
                yield at(option.why, *here, "options", place, "why")
            for place, mistake in enumerate(question.mistakes):
                yield at(mistake.why, *here, "mistakes", place, "why")
            for place, item in enumerate(question.items):
                yield at(item.text, *here, "items", place, "text")
                yield at(item.why, *here, "items", place, "why")
            for text in question.accept[:1]:  # what a learner is shown as right
                yield at(text, *here, "accept")
    elif isinstance(activity, Deck):
        for number, card in enumerate(activity.cards):
            yield at(card.front, "cards", number, "front")
            yield at(card.back, "cards", number, "back")
            yield at(card.text, "cards", number, "text")
            yield at(card.why, "cards", number, "why")
            yield at(card.reason, "cards", number, "reason", inline=True)
    elif isinstance(activity, Visual):
        yield at(activity.words, "words")
        yield at(activity.reason, "reason", inline=True)
        for number, given in enumerate(activity.inputs):
            yield at(given.label, "inputs", number, "label", inline=True)
            yield at(given.help, "inputs", number, "help", inline=True)
    elif isinstance(activity, Resources):
        for number, resource in enumerate(activity.resources):
            yield at(resource.why, "resources", number, "why", external=True)


def _lesson(lesson: Lesson, path: Path) -> Iterator[Text]:
    lines = FileLines(path)

    def head(text: str, *place: str | int) -> Text:
        return Text(text, lines.file, lines.text(*place), scope=lesson.id)

    yield head(lesson.title, "title")
    yield head(lesson.summary, "summary")
    for goal in lesson.goals:
        yield Text(goal, lines.file, lines.item(goal, "goals"), scope=lesson.id)
    for block in lesson.walk():
        yield Text(block.title, lines.file, block.line, scope=lesson.id)
        yield Text(block.reason, lines.file, block.line, scope=lesson.id)
        yield Text(
            block.body,
            lines.file,
            block.body_line,
            inline=False,
            external=block.kind == "later",
            scope=lesson.id,
            block=block.kind,
        )
