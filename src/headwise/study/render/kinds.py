"""Words and signs for the kinds of things that a guide holds."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What a reader is told of a kind: a word, and the name of a drawing in templates/icons.html.j2."""

    word: str
    icon: str


ACTIVITY = {
    "lesson": Kind("Lesson", "lesson"),
    "quiz": Kind("Quiz", "quiz"),
    "cards": Kind("Flashcards", "cards"),
    "visual": Kind("Visual", "visual"),
    "resources": Kind("Resources", "resources"),
}

BLOCK = {
    "explain": Kind("", ""),
    "detail": Kind("Implementation detail", "detail"),
    "later": Kind("Later research", "later"),
    "simplified": Kind("Our simplification", "simplified"),
    "trap": Kind("Common mistake", "trap"),
    "loose": Kind("Where the paper is loose", "loose"),
    "code": Kind("In code", "code"),
    "visual": Kind("Try it", "visual"),
    "check": Kind("Check yourself", "quiz"),
    "exercise": Kind("Exercise", "exercise"),
    "solution": Kind("Solution", "exercise"),
    "summary": Kind("In short", "summary"),
}

SOURCE = {
    "section": Kind("section", "section"),
    "paragraph": Kind("paragraph", "paragraph"),
    "equation": Kind("equation", "equation"),
    "figure": Kind("figure", "figure"),
    "table": Kind("table", "table"),
    "list": Kind("list", "list"),
    "item": Kind("list item", "list"),
    "footnote": Kind("footnote", "footnote"),
    "reference": Kind("reference", "reference"),
}

RESOURCE = {"paper": "Paper", "code": "Code", "reading": "Reading", "course": "Course"}

QUESTION = {
    "single": "Choose one",
    "multiple": "Choose all that hold",
    "numeric": "Give a number",
    "text": "Answer in a word or two",
    "order": "Put these in order",
    "shape": "Give the shape",
}
