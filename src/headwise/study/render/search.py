"""The index that the search page reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headwise.study.content import Deck, Guide, Lesson, Quiz, Resources, Visual
from headwise.study.render import kinds
from headwise.study.render.maker import Maker, plain


def index(guide: Guide, maker: Maker) -> str:
    """JSON: for every place its title, address from the front page, kind, words, and the places of the paper
    that it rests on. Answers and reasons of questions are not in it."""
    entries = list(_entries(guide, maker))
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
                text = plain(maker.text(block.body, activity.file, block.body_line or block.line))
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
                text = plain(maker.text(question.prompt, activity.file, question.line))
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
