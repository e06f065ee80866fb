"""A guide: everything that its folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec

from headwise.study.content.cards import Card, Deck
from headwise.study.content.facts import Fact
from headwise.study.content.lesson import Block, Lesson
from headwise.study.content.quiz import Question, Quiz
from headwise.study.content.resources import Resources
from headwise.study.content.sources import Anchor, Paper, Source, canonical
from headwise.study.content.visual import Visual

Activity: TypeAlias = Lesson | Quiz | Deck | Visual | Resources


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a guide: activities, in teaching order."""

    title: str
    activities: list[str]
    intro: str = ""


class GuideFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """guide.toml."""

    id: str
    title: str
    paper: Paper
    parts: list[Part]
    language: str = "en-GB"
    intro: str = ""


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """A guide.

    Attributes:
        activities: by id, in teaching order.
        sources: by the anchor's id, those that sources.toml tells of.
        anchors: every place of the paper's page, by id.
        folder: where it was read from.
    """

    id: str
    title: str
    paper: Paper
    parts: list[Part]
    activities: dict[str, Activity]
    sources: dict[str, Source]
    facts: dict[str, Fact]
    anchors: dict[str, Anchor]
    folder: Path
    language: str = "en-GB"
    intro: str = ""

    def source(self, anchor: str) -> Source:
        """The source of this id; a converter's suffix (.6, .1) is no matter.

        Raises:
            KeyError: sources.toml has none.
        """
        return self.sources[canonical(anchor)]

    def questions(self) -> dict[str, Question]:
        """Every question by its id, in teaching order."""
        return {
            question.id: question
            for activity in self.activities.values()
            if isinstance(activity, Quiz)
            for question in activity.questions
        }

    def cards(self) -> dict[str, Card]:
        """Every card by its id, in teaching order."""
        return {
            card.id: card
            for activity in self.activities.values()
            if isinstance(activity, Deck)
            for card in activity.cards
        }

    def activity_of(self, item: str) -> Activity:
        """The activity that holds the question or card of this id.

        Raises:
            KeyError: none does.
        """
        for activity in self.activities.values():
            if isinstance(activity, Quiz | Deck) and item in activity.places():
                return activity
        raise KeyError(f"the guide {self.id!r} has no question and no card {item!r}")

    def block(self, place: str) -> Block:
        """The block at "activity#block".

        Raises:
            KeyError: there is no such lesson, or no such block in it.
        """
        activity, _, name = place.partition("#")
        lesson = self.activities.get(activity)
        if isinstance(lesson, Lesson):
            for block in lesson.walk():
                if block.id == name:
                    return block
        raise KeyError(f"the guide {self.id!r} has no block {place!r}")
