"""Questions are graded as their author meant: by the very grading that a learner meets."""

from __future__ import annotations

from collections.abc import Callable

from headwise.study.answers_text import NotAnAnswer
from headwise.study.check.checking import Checking
from headwise.study.content import Mistake, Question
from headwise.study.errors import GuideError
from headwise.study.grading import grade_by_key
from headwise.study.keys import Key, answer_key, names

Tell = Callable[..., None]
"""Takes what is wrong with a question, and the path from it to where."""


def check_graded(checking: Checking, question: Question, file: str, tell: Tell) -> None:
    """The question can be graded. Each right answer can be given, and comes out as right; each mistake as
    wrong, and by itself: one that an earlier one hides, by its tolerance or since only case and articles
    differ, would never be told."""
    try:
        if question.kind == "shape":
            _ = checking.ran  # all code of the guide in one process, this question's too
        key = answer_key(question, checking.guide, lambda text: text, file=file)
    except GuideError as error:
        checking.error(error.message, error.file, error.line)
        return
    _check_right(question, key, tell)
    _check_mistakes(question, key, tell)


def _check_right(question: Question, key: Key, tell: Tell) -> None:
    if question.kind == "numeric" and not question.tolerance:
        value = key["answer"]
        if not isinstance(value, int) and len(f"{value:.15g}") > 8:
            tell(f"nobody types {value!r}: give a tolerance")
    for given, place in _right(question, key):
        try:
            if not grade_by_key(key, given).correct:
                tell(f"the right answer {_quoted(given)} is graded as wrong", *place)
        except NotAnAnswer as error:
            tell(f"the right answer {_quoted(given)} can't be given: {error}", *place)


def _right(question: Question, key: Key) -> list[tuple[str | list[str], tuple[str, ...]]]:
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


def _check_mistakes(question: Question, key: Key, tell: Tell) -> None:
    numbered = [{**one, "why": str(place)} for place, one in enumerate(key.get("mistakes", ()))]
    key = {**key, "mistakes": numbered}  # reasons may be alike: the number tells which mistake counts
    within = f": it lies within the tolerance {question.tolerance:g}" if question.tolerance else ""
    lower = f"lower the tolerance {question.tolerance:g}, or " if question.tolerance else ""
    for place, mistake in enumerate(question.mistakes):
        said = _said(mistake)
        try:
            result = grade_by_key(key, _typed(mistake))
        except NotAnAnswer as error:
            tell(f"the mistake {said} can't be given: {error}", "mistakes", place)
            continue
        if result.correct:
            tell(f"the mistake {said} is graded as right{within}", "mistakes", place)
        elif result.why != str(place):
            earlier = _said(question.mistakes[int(result.why)])
            tell(
                f"the mistake {said} is never told, since {earlier} counts for it too: {lower}keep one",
                "mistakes",
                place,
            )


def _typed(mistake: Mistake) -> str:
    """A mistake as a learner types it."""
    if mistake.text is not None:
        return mistake.text
    return str(mistake.shape) if mistake.shape is not None else f"{mistake.value:.15g}"


def _said(mistake: Mistake) -> str:
    return _typed(mistake) if mistake.text is None else _quoted(mistake.text)


def _quoted(given: object, longest: int = 60) -> str:
    text = repr(given)
    return text if len(text) <= longest else f"{text[:longest]}..."
