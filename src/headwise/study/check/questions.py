"""Questions: an answer that can be right, and a reason for everything that can be chosen."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

from headwise.study import answers_text
from headwise.study.check.checking import Checking
from headwise.study.check.graded import check_graded
from headwise.study.content import Lesson, Question, Quiz
from headwise.study.errors import GuideError

_PLAIN = re.compile(r"\*+|(?<!\w)_+|_+(?!\w)|`")  # emphasis; 2*3 and a_b too are told apart by what is left

Tell = Callable[..., None]
"""Takes what is wrong with a question, and the path from it to where."""

FIELDS = {
    "single": ("options",),
    "multiple": ("options",),
    "numeric": ("answer", "fact", "tolerance", "unit", "mistakes"),
    "text": ("accept", "mistakes"),
    "order": ("items",),
    "shape": ("code", "ask", "mistakes"),
}
EMPTY: dict[str, object] = {
    "options": [],
    "mistakes": [],
    "items": [],
    "accept": [],
    "answer": None,
    "fact": "",
    "tolerance": 0.0,
    "unit": "",
    "code": "",
    "ask": "",
}


def check_questions(checking: Checking) -> None:
    """Every question of a kind has what that kind needs and nothing else; every option, mistake and item says
    why; shape traces run; `block` and the lessons' `check` blocks lead somewhere."""
    for activity in checking.guide.activities.values():
        if isinstance(activity, Quiz):
            file = checking.file(activity)
            for number, question in enumerate(activity.questions):
                _check_question(checking, question, file, number)
        elif isinstance(activity, Lesson):
            known = checking.guide.questions()
            for block in activity.walk():
                asked = block.options.get("question", "")
                if block.kind == "check" and asked and asked not in known:
                    checking.error(
                        f"#{block.id}: no quiz has the question {asked!r}",
                        checking.file(activity),
                        block.line,
                    )


def _check_question(checking: Checking, question: Question, file: str, number: int) -> None:
    def tell(message: str, *place: str | int) -> None:
        line = checking.line(file, "questions", number, *place)
        checking.error(f"{question.id}: {message}", file, line)

    before = checking.told
    if not question.prompt.strip():
        tell("the prompt is empty")
    if not question.explain.strip():
        tell('explain = "..." is missing: why is the answer right?')
    if question.rev < 1:
        tell(f"rev = {question.rev}: revisions count from 1", "rev")
    check_place(
        checking, question.block, question.id, file, checking.line(file, "questions", number, "block")
    )
    for name, empty in EMPTY.items():
        if name not in FIELDS[question.kind] and getattr(question, name) != empty:
            tell(f'a question of kind "{question.kind}" has no {name}', name)
    if question.kind in ("single", "multiple"):
        _check_options(question, tell)
    elif question.kind == "numeric":
        _check_number(checking, question, tell)
    elif question.kind == "text":
        _check_text(question, tell)
    elif question.kind == "order":
        _check_items(question, tell)
    else:
        _check_shape(checking, question, tell, file)
    field = {"numeric": "value", "text": "text", "shape": "shape"}.get(question.kind, "")
    for place, mistake in enumerate(question.mistakes):
        if not mistake.why.strip():
            tell(f"mistake {place + 1} has no why", "mistakes", place)
        given = [name for name in ("value", "text", "shape") if getattr(mistake, name) is not None]
        if field and given != [field]:
            what = " and ".join(given) or "no answer"
            tell(f"mistake {place + 1} has {what}: give {field} and why", "mistakes", place)
    if checking.told == before and (checking.run or question.kind != "shape"):
        check_graded(checking, question, tell)


def check_place(checking: Checking, place: str, name: str, file: str, line: int) -> None:
    """Where a question or card is taught: "activity#block", or "activity"."""
    if not place:
        checking.error(f'{name}: block = "activity#block" is missing: where is this taught?', file, line)
        return
    if place in checking.guide.activities:
        return
    try:
        checking.guide.block(place)
    except KeyError:
        activity = checking.guide.activities.get(place.partition("#")[0])
        ids = ", ".join(block.id for block in activity.walk()) if isinstance(activity, Lesson) else ""
        hint = f"; its blocks are {ids}" if ids else ""
        checking.error(f"{name}: there is no block {place}{hint}", file, line)


def _check_options(question: Question, tell: Tell) -> None:
    if len(question.options) < 2:
        tell(f"it has {len(question.options)} options: give two or more")
    right = sum(option.correct for option in question.options)
    if question.kind == "single" and right != 1:
        tell(f"{right} options are correct: exactly one must be")
    elif question.kind == "multiple" and not right:
        tell("no option is correct: at least one must be, since nothing chosen is no answer")
    for place, option in enumerate(question.options):
        if not option.text.strip():
            tell(f"option {place + 1} has no text", "options", place)
        if not option.why.strip():
            tell(f"option {place + 1} has no why: {option.text!r}", "options", place)
    _check_twice([option.text for option in question.options], "option", tell)


def _check_number(checking: Checking, question: Question, tell: Tell) -> None:
    value: object = question.answer
    if question.fact:
        fact = checking.guide.facts.get(question.fact)
        if fact is None:
            tell(f"facts.toml has no {question.fact}")
            return
        if question.answer is not None:
            tell("it has an answer and a fact: keep one of them")
        value = fact.value
    if not isinstance(value, int | float):
        tell("it needs answer = a number, or fact = the id of one")
        return
    if question.tolerance < 0:
        tell(f"tolerance = {question.tolerance:g}: how far off still counts as right, 0 or more", "tolerance")
    if not float(value).is_integer() and not question.tolerance and len(f"{value:.15g}") > 8:
        tell(f"nobody types {value!r}: give a tolerance")
    for place, mistake in enumerate(question.mistakes):
        if mistake.value is not None and abs(mistake.value - value) <= question.tolerance + 1e-9 * abs(value):
            message = f"the mistake {mistake.value:g} lies within the tolerance of the answer {value:g}"
            tell(message, "mistakes", place)
    told = [(place, one.value) for place, one in enumerate(question.mistakes) if one.value is not None]
    for (_, first), (place, second) in combinations(told, 2):
        if abs(first - second) <= question.tolerance + 1e-9 * abs(first):
            message = (
                f"the mistakes {first:g} and {second:g} lie within the tolerance {question.tolerance:g} of "
                f"each other: lower it, or keep one of them"
            )
            tell(message, "mistakes", place)


def _check_text(question: Question, tell: Tell) -> None:
    if not question.accept:
        tell('accept = ["..."] is missing')
    for text in question.accept:
        if len(text) > answers_text.LONGEST:
            tell(
                f"an accepted answer has {len(text)} characters, and {answers_text.LONGEST} can be given: "
                f"{text[:30]!r}...",
                "accept",
            )
        if "{" in text or "}" in text:
            tell(f"accept has {text!r}: facts aren't filled in there, and nobody types braces", "accept")
    right = {answers_text.words(text) for text in question.accept}
    if "" in right:
        tell("an accepted answer has no words left when case, punctuation and articles are")
    for place, mistake in enumerate(question.mistakes):
        if mistake.text is not None and ("{" in mistake.text or "}" in mistake.text):
            message = f"the mistake {mistake.text!r}: facts aren't filled in there, and nobody types braces"
            tell(message, "mistakes", place)
        elif mistake.text is not None and answers_text.words(mistake.text) in right:
            tell(f"the mistake {mistake.text!r} is accepted as right", "mistakes", place)


def _check_items(question: Question, tell: Tell) -> None:
    if len(question.items) < 3:
        tell(f"it has {len(question.items)} items to put in order: give three or more")
    for place, item in enumerate(question.items):
        if not item.why.strip():
            tell(f"item {place + 1} has no why: {item.text!r}", "items", place)
    _check_twice([item.text for item in question.items], "item", tell)


def _check_shape(checking: Checking, question: Question, tell: Tell, file: str) -> None:
    if not question.code.strip() or not question.ask.strip():
        tell("it needs code to run, and ask: the expression whose shape is asked for")
        return
    if not checking.run:
        return
    from headwise.study.running import shape_of

    try:
        _ = checking.ran  # all code of the guide in one process, this question's too
        shape = shape_of(question, str(Path(file)))
    except GuideError as error:
        checking.error(error.message, error.file, error.line)
        return
    for place, mistake in enumerate(question.mistakes):
        if mistake.shape == shape:
            tell(f"the mistake {mistake.shape} is the right answer", "mistakes", place)


def _check_twice(texts: list[str], what: str, tell: Tell) -> None:
    plain = [" ".join(_PLAIN.sub("", text.lower()).split()).rstrip(".") for text in texts]
    for text in {text for text in plain if plain.count(text) > 1}:
        tell(f"two {what}s are the same: {text!r}")
