"""The index that the search page reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headwise.study.content import Block, Deck, Guide, Lesson, Question, Quiz, Resources, Visual
from headwise.study.render import kinds
from headwise.study.render.maker import Maker
from headwise.study.render.reading import ReadMaths
from headwise.study.render.words import words as plain


def index(guide: Guide) -> str:
    """JSON: for every place its title, address from the front page, kind, words, and the places of the paper
    that it rests on. Answers and reasons of questions are not in it. Formulas are there as one types them
    (`reading.read_tex`)."""
    entries = list(_entries(guide, Maker(guide, maths=ReadMaths())))
    labels = {name: anchor.label for name, anchor in guide.anchors.items()}
    return json.dumps(
        {"entries": entries, "anchors": labels, "sources": sorted(guide.sources)},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _entry(kind: str, title: str, within: str, url: str, words: str, sources: list[str]) -> dict[str, Any]:
    return {"kind": kind, "title": title, "in": within, "url": url, "words": words, "sources": sources}


def _entries(guide: Guide, maker: Maker) -> Iterator[dict[str, Any]]:
    for activity in guide.activities.values():
        word = kinds.ACTIVITY[activity.type].word
        sources = activity.sources if isinstance(activity, Visual) else []
        words = plain(maker.inline(activity.summary, activity.file, activity.line))
        if isinstance(activity, Visual):
            words = f"{words} {plain(maker.text(activity.words, activity.file, activity.line))}"
        yield _entry(word, activity.title, "", f"{activity.id}/", words, sources)
        if isinstance(activity, Lesson):
            for block in activity.walk():
                if block.kind == "solution":
                    continue
                text = _block_words(block, guide, maker, activity)
                title = plain(maker.inline(block.title, activity.file, block.line, links=False))
                yield _entry(
                    kinds.BLOCK[block.kind].word or word,
                    title or activity.title,
                    activity.title,
                    f"{activity.id}/#{block.id}",
                    " ".join([text, *block.symbols]),
                    block.sources,
                )
        elif isinstance(activity, Quiz):
            for number, question in enumerate(activity.questions, start=1):
                text = _prompt(question, maker, activity.file)
                yield _entry(
                    "Question",
                    f"Question {number}",
                    activity.title,
                    f"{activity.id}/#{question.id}",
                    text,
                    question.sources,
                )
        elif isinstance(activity, Deck):
            for card in activity.cards:
                front = plain(maker.card(card, activity.file).front)
                yield _entry(
                    "Flashcard", front, activity.title, f"{activity.id}/#{card.id}", "", card.sources
                )
        elif isinstance(activity, Resources):
            for one in activity.resources:
                text = f"{one.authors} {plain(maker.inline(one.why, activity.file, one.line))}"
                yield _entry("Resource", one.title, activity.title, f"{activity.id}/#{one.id}", text, [])
    for source in guide.sources.values():
        about = plain(maker.inline(source.about, "sources.toml", source.line))
        yield _entry("Source", source.label, "Sources", f"sources/#{source.id}", about, [source.id])
    for fact in guide.facts.values():
        yield _entry("Number", fact.text, "Numbers", f"numbers/#{fact.id}", fact.id, [])


def _block_words(block: Block, guide: Guide, maker: Maker, lesson: Lesson) -> str:
    """The words of a block: of one that shows a question or a visual, those of what it shows as well."""
    found = [plain(maker.text(block.body, lesson.file, block.body_line or block.line))]
    if block.kind == "check" and (question := guide.questions().get(block.options.get("question", ""))):
        found.append(_prompt(question, maker, guide.activity_of(question.id).file))
    elif block.kind == "visual":
        shown = guide.activities.get(block.options.get("visual", ""))
        if isinstance(shown, Visual):
            found += [shown.title + ".", plain(maker.inline(shown.summary, shown.file, shown.line))]
    return " ".join(filter(None, found))


def _prompt(question: Question, maker: Maker, file: str) -> str:
    return plain(maker.text(question.prompt, file, question.line))
