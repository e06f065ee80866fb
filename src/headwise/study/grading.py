"""Grading: what was answered against the question's key.

static/grade.js does the same in a static export; tests/study/grading holds both to the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwise.study import answers_text
from headwise.study.answers_text import NotAnAnswer
from headwise.study.content import Guide, Question
from headwise.study.keys import Key, answer_key

SLACK = 1e-9
"""Numbers that differ by less than this share of themselves are the same number written twice."""

Given = str | list[str]
"""An answer: what was typed; the name of the option that was chosen; or a list of names."""


@dataclass(frozen=True)
class Result:
    """A graded answer.

    Attributes:
        correct: wholly right.
        score: between 0 and 1; what is partly right counts partly.
        verdict: one sentence, the first thing that a learner hears.
        why: the reason that belongs to this answer, where it is a mistake that the author foresaw.
        options: of choices: for each, by its name, whether it was chosen, whether it is right, and why.
        items: of orders: for each, where it was put (from 1), where it belongs, and why.
        right, explain: the right answer and the explanation.
        again: "activity#block", where to read again.
    """

    question: str
    rev: int
    correct: bool
    score: float
    verdict: str
    why: str = ""
    options: tuple[dict[str, Any], ...] = ()
    items: tuple[dict[str, Any], ...] = ()
    right: str = ""
    explain: str = ""
    again: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "question": self.question,
            "rev": self.rev,
            "correct": self.correct,
            "score": self.score,
            "verdict": self.verdict,
            "why": self.why,
            "options": list(self.options),
            "items": list(self.items),
            "right": self.right,
            "explain": self.explain,
            "again": self.again,
        }


def grade(question: Question, given: Given, guide: Guide | None = None) -> Result:
    """Grade an answer to a question; reasons stay Markdown.

    Args:
        guide: holds the facts that the question names.

    Raises:
        NotAnAnswer: what was given can't be graded.
    """
    return grade_by_key(answer_key(question, guide, lambda text: text), given)


def grade_by_key(key: Key, given: Given) -> Result:
    """Grade an answer by the question's key.

    Raises:
        NotAnAnswer: what was given can't be graded: nothing was chosen, or it is no number.
    """
    kind = key["kind"]
    if kind in ("single", "multiple"):
        return _choice(key, given)
    if kind == "order":
        return _order(key, given)
    if not isinstance(given, str):
        raise NotAnAnswer("Write the answer as text.")
    if kind == "numeric":
        return _numeric(key, given)
    if kind == "shape":
        return _typed(key, answers_text.shape(given), key["shape"], "shape")
    return _text(key, given)


def _choice(key: Key, given: Given) -> Result:
    chosen = [given] if isinstance(given, str) else list(given)
    known = {option["key"] for option in key["options"]}
    if not chosen or chosen == [""]:
        raise NotAnAnswer("Choose an answer first.")
    if not set(chosen) <= known or len(set(chosen)) != len(chosen):
        raise NotAnAnswer("This page shows other options than the guide has now: reload it.")
    if key["kind"] == "single" and len(chosen) != 1:
        raise NotAnAnswer(f"Choose one answer; {len(chosen)} are chosen.")
    options = tuple(
        {
            "key": option["key"],
            "chosen": option["key"] in chosen,
            "correct": option["correct"],
            "why": option["why"],
        }
        for option in key["options"]
    )
    judged = sum(option["chosen"] == option["correct"] for option in options)
    correct = judged == len(options)
    if key["kind"] == "single":
        return _result(key, correct, float(correct), "Not right.", options=options)
    wrong = f"Not right yet. You judged {judged} of {len(options)} options correctly."
    return _result(key, correct, judged / len(options), wrong, options=options)


def _order(key: Key, given: Given) -> Result:
    right = [item["key"] for item in key["items"]]
    if isinstance(given, str) or sorted(given) != sorted(right):
        raise NotAnAnswer("This page shows other items than the guide has now: reload it.")
    items = tuple(
        {
            "key": item["key"],
            "place": given.index(item["key"]) + 1,
            "right_place": place,
            "why": item["why"],
        }
        for place, item in enumerate(key["items"], 1)
    )
    placed = sum(item["place"] == item["right_place"] for item in items)
    stand = "stands in its place" if placed == 1 else "stand in their places"
    wrong = f"Not right yet: {placed} of {len(items)} {stand}."
    return _result(key, placed == len(items), placed / len(items), wrong, items=items)


def _numeric(key: Key, given: str) -> Result:
    value = answers_text.number(given, key["unit"])
    if _near(value, key["answer"], key["tolerance"]):
        return _result(key, True, 1.0)
    for mistake in key["mistakes"]:
        if "value" in mistake and _near(value, mistake["value"], key["tolerance"]):
            return _result(key, False, 0.0, why=mistake["why"])
    return _result(key, False, 0.0)


def _near(value: float, wanted: float, tolerance: float) -> bool:
    return abs(value - wanted) <= tolerance + SLACK * abs(wanted)


def _text(key: Key, given: str) -> Result:
    if len(given) > answers_text.LONGEST:
        raise NotAnAnswer(f"That is longer than {answers_text.LONGEST} characters: a few words are enough.")
    typed = answers_text.words(given)
    if not typed:
        raise NotAnAnswer("Write an answer first.")
    return _typed(key, typed, key["accept"], "text")


def _typed(key: Key, typed: str | list[int], right: object, name: str) -> Result:
    if (typed in right) if isinstance(typed, str) and isinstance(right, list) else (typed == right):
        return _result(key, True, 1.0)
    for mistake in key["mistakes"]:
        if mistake.get(name) == typed:
            return _result(key, False, 0.0, why=mistake["why"])
    return _result(key, False, 0.0)


def _result(
    key: Key,
    correct: bool,
    score: float,
    wrong: str = "Not right.",
    *,
    why: str = "",
    options: tuple[dict[str, Any], ...] = (),
    items: tuple[dict[str, Any], ...] = (),
) -> Result:
    return Result(
        question=key["id"],
        rev=key["rev"],
        correct=correct,
        score=score,
        verdict="Right." if correct else wrong,
        why=why,
        options=options,
        items=items,
        right=key["right"],
        explain=key["explain"],
        again=key["again"],
    )
