"""Questions are graded as their author meant: by the very grading that a learner meets."""

from __future__ import annotations

from collections.abc import Callable

from headwise.study.answers_text import NotAnAnswer
from headwise.study.check.checking import Checking
from headwise.study.content import Mistake, Question
from headwise.study.errors import GuideError
from headwise.study.grading import grade_by_key
from headwise.study.keys import answer_key, names

Tell = Callable[..., None]
"""Takes what is wrong with a question, and the path from it to where."""


def check_graded(checking: Checking, question: Question, tell: Tell) -> None:
    """Each right answer comes out as right; each mistake as wrong, with its own reason: one that an earlier
    one hides, by its tolerance or since only case and articles differ, would never be told."""
    try:
        key = answer_key(question, checking.guide, lambda text: text)
    except GuideError as error:
        tell(error.message)
        return
    for given, place in _right(question, key):
        try:
            if not grade_by_key(key, given).correct:
                tell(f"the right answer {given!r} is graded as wrong", *place)
        except NotAnAnswer as error:
            tell(f"the right answer {given!r} can't be given: {error}", *place)
    for number, mistake in enumerate(question.mistakes):
        typed = _typed(mistake)
        try:
            result = grade_by_key(key, typed)
        except NotAnAnswer as error:
            tell(f"the mistake {typed!r} can't be given: {error}", "mistakes", number)
            continue
        if result.correct:
            tell(f"the mistake {typed!r} is graded as right", "mistakes", number)
        elif result.why != mistake.why:
            tell(
                f"the mistake {typed!r} is never told, since an earlier one counts for it too: keep one",
                "mistakes",
                number,
            )


def _right(question: Question, key: dict[str, object]) -> list[tuple[str | list[str], tuple[str, ...]]]:
    """The right answers, and where each stands in the question."""
    if question.kind == "text":
        return [(text, ("accept",)) for text in question.accept]
    if question.kind == "numeric":
        return [(repr(key["answer"]), ("answer",) if question.answer is not None else ("fact",))]
    if question.kind == "shape":
        return [(str(key["shape"]), ("ask",))]
    if question.kind == "order":
        return [(names(question), ("items",))]
    pairs = zip(names(question), question.options, strict=True)
    right = [name for name, option in pairs if option.correct]
    return [(right[0] if question.kind == "single" else right, ("options",))]


def _typed(mistake: Mistake) -> str:
    if mistake.text is not None:
        return mistake.text
    return str(mistake.shape) if mistake.shape is not None else repr(mistake.value)
