"""What a guide holds: its structs, and the readers of its files."""

from headwise.study.content.cards import Card, Deck
from headwise.study.content.facts import Fact
from headwise.study.content.guide import Activity, Guide, Part
from headwise.study.content.lesson import Block, Lesson
from headwise.study.content.load import load_guide, no_guide, read_guide
from headwise.study.content.quiz import Item, Mistake, Option, Question, Quiz
from headwise.study.content.resources import Resource, Resources
from headwise.study.content.sources import Anchor, Paper, Source, canonical
from headwise.study.content.visual import Input, Visual
from headwise.study.errors import GuideError

__all__ = [
    "Activity",
    "Anchor",
    "Block",
    "Card",
    "Deck",
    "Fact",
    "Guide",
    "GuideError",
    "Input",
    "Item",
    "Lesson",
    "Mistake",
    "Option",
    "Paper",
    "Part",
    "Question",
    "Quiz",
    "Resource",
    "Resources",
    "Source",
    "Visual",
    "canonical",
    "load_guide",
    "no_guide",
    "read_guide",
]
