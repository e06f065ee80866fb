"""Quizzes and their questions."""

from __future__ import annotations

from typing import Literal

import msgspec

from headwise.study.content.listed import Listed

QuestionKind = Literal["single", "multiple", "numeric", "text", "order", "shape"]


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One choice of a question, and why it is right or wrong."""

    text: str
    correct: bool = False
    why: str = ""


class Mistake(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wrong answer that learners give, and what led there. One of value, text, shape is given."""

    why: str
    value: float | None = None
    text: str | None = None
    shape: list[int] | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the things that a question wants put in order, and why it stands where it does."""

    text: str
    why: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question.

    Attributes:
        id: unique over the whole guide, and kept for ever: a learner's answers hang on it.
        rev: rises when the answer changes, not when a word does.
        prompt, explain: Markdown; `explain` is shown after grading.
        sources, reason: the places it rests on; why there are none, where there are none.
        block: "activity#block", where to read again.
        options: of "single" and "multiple".
        answer, fact, tolerance, unit: of "numeric": the number, or the id of a fact that holds it; how far
            off still counts as right.
        accept: of "text": right answers; compared without case, punctuation and articles.
        items: of "order", in the right order.
        code, ask: of "shape": what is run (`hw` and `torch` are there), and the expression whose shape is
            asked for.
        mistakes: of "numeric", "text" and "shape".
        line: in the quiz's file.
    """

    id: str
    kind: QuestionKind
    prompt: str
    rev: int = 1
    sources: list[str] = []
    reason: str = ""
    explain: str = ""
    block: str = ""
    options: list[Option] = []
    mistakes: list[Mistake] = []
    items: list[Item] = []
    accept: list[str] = []
    answer: float | None = None
    fact: str = ""
    tolerance: float = 0.0
    unit: str = ""
    code: str = ""
    ask: str = ""
    line: int = 0


class Quiz(Listed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Questions that are answered together."""

    questions: list[Question]
    type: Literal["quiz"] = "quiz"

    def places(self) -> list[str]:
        return [one.id for one in self.questions]
