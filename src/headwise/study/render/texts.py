"""Every text of a guide that is Markdown, with where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from headwise.study.content import Activity, Deck, Guide, Lesson, Quiz, Resources, Visual
from headwise.study.maths import Maths
from headwise.study.render.markdown import to_html


@dataclass(frozen=True)
class Text:
    """A Markdown text. `file` and `line` are where it begins."""

    text: str
    file: str
    line: int = 1
    inline: bool = False

    def to_html(self, guide: Guide, maths: Maths | None = None) -> Markup:
        return to_html(self.text, guide, maths=maths, file=self.file, line=self.line, inline=self.inline)


def all_texts(guide: Guide) -> Iterator[Text]:
    """Every text of a guide, those of its activities in teaching order."""
    home = str(guide.folder / "guide.toml")
    yield Text(guide.intro, home)
    for part in guide.parts:
        yield Text(part.intro, home)
    for activity in guide.activities.values():
        file = str(guide.folder / activity.file)
        yield Text(activity.summary, file, inline=True)
        yield from (text for text in _of(activity, file) if text.text)
    for source in guide.sources.values():
        yield Text(source.about, str(guide.folder / "sources.toml"), source.line, inline=True)


def _of(activity: Activity, file: str) -> Iterator[Text]:
    if isinstance(activity, Lesson):
        for goal in activity.goals:
            yield Text(goal, file, activity.line, inline=True)
        for block in activity.walk():
            yield Text(block.title, file, block.line, inline=True)
            yield Text(block.body, file, block.body_line or block.line)
            yield Text(block.reason, file, block.line, inline=True)
    elif isinstance(activity, Quiz):
        for question in activity.questions:
            texts = [question.prompt, question.explain]
            for option in question.options:
                texts += [option.text, option.why]
            texts += [mistake.why for mistake in question.mistakes]
            for item in question.items:
                texts += [item.text, item.why]
            texts += question.accept[:1]  # what a learner is shown as right
            yield from (Text(text, file, question.line) for text in texts)
    elif isinstance(activity, Deck):
        for card in activity.cards:
            for text in (card.front, card.back, card.text, card.why):
                yield Text(text, file, card.line)
    elif isinstance(activity, Visual):
        yield Text(activity.words, file, activity.line)
        for given in activity.inputs:
            for text in (given.label, given.help):
                yield Text(text, file, given.line, inline=True)
    elif isinstance(activity, Resources):
        for resource in activity.resources:
            yield Text(resource.why, file, resource.line, inline=True)
