"""Examples of how to write an answer give no answer away."""

from __future__ import annotations

from headwise.study.answers_text import NUMBER_EXAMPLES, SHAPE_EXAMPLE, NotAnAnswer
from headwise.study.check.checking import Checking
from headwise.study.content import Question, Quiz
from headwise.study.errors import GuideError
from headwise.study.grading import grade_by_key
from headwise.study.keys import answer_key


def check_examples(checking: Checking) -> None:
    """What the pages and messages give as examples is graded as right by no typed question of the guide, of
    whichever kind: a learner may have been shown it at another one. It warns, since the examples are not the
    author's to change."""
    for activity in checking.guide.activities.values():
        if not isinstance(activity, Quiz):
            continue
        for question in activity.questions:
            for example in _answering(checking, question):
                checking.warn(
                    f"{question.id}: {example!r} answers it, and is shown to learners as an example of how "
                    f"to write an answer: ask for another value",
                    checking.file(activity),
                    question.line,
                )


def _answering(checking: Checking, question: Question) -> list[str]:
    """The examples that are right answers to a question."""
    if question.kind == "shape" and not checking.run:
        return []
    try:
        key = answer_key(question, checking.guide, lambda text: text)
    except GuideError:
        return []  # another rule tells why it has no answer
    found = []
    for example in (*NUMBER_EXAMPLES, SHAPE_EXAMPLE):
        try:
            if grade_by_key(key, example).correct:
                found.append(example)
        except NotAnAnswer:
            continue
    return found
