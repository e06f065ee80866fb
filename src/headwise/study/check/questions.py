"""Questions: an answer that can be right, and a reason for everything that can be chosen."""

from __future__ import annotations

import re

from headwise.study.check.checking import Checking
from headwise.study.check.graded import Tell, check_graded
from headwise.study.content import Lesson, Question, Quiz

_PLAIN = re.compile(r"\*+|(?<!\w)_+|_+(?!\w)|`")  # emphasis; 2*3 and a_b too are told apart by what is left

FIELDS = {
    "single": ("options",),
    "multiple": ("options",),
    "numeric": ("answer", "fact", "tolerance", "unit", "mistakes"),
    "text": ("accept", "mistakes"),
    "order": ("items",),
    "shape": ("code", "ask", "mistakes"),
}
"""What a question of each kind may have, beside what all have."""

MISTAKE = {"numeric": "value", "text": "text", "shape": "shape"}
"""What a mistake has beside its reason."""

_BARE = Question(id="", kind="single", prompt="")  # its fields have what a question is without them


def check_questions(checking: Checking) -> None:
    """Every question of a kind has what that kind needs and nothing else, and is graded as it is meant; every
    option, mistake and item says why; `block` and the lessons' `check` blocks lead somewhere."""
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

    if not question.prompt.strip():
        tell("the prompt is empty")
    if not question.explain.strip():
        tell('explain = "..." is missing: why is the answer right?')
    if question.rev < 1:
        tell(f"rev = {question.rev}: revisions count from 1", "rev")
    check_place(
        checking, question.block, question.id, file, checking.line(file, "questions", number, "block")
    )
    _check_reasons(question, tell)
    before = checking.told
    for name in sorted({name for names in FIELDS.values() for name in names} - {*FIELDS[question.kind]}):
        if getattr(question, name) != getattr(_BARE, name):
            tell(f'a question of kind "{question.kind}" has no {name}', name)
    _check_mistakes(question, tell)
    _CHECKS[question.kind](question, tell)
    if checking.told == before and (checking.run or question.kind != "shape"):
        check_graded(checking, question, file, tell)


def _check_reasons(question: Question, tell: Tell) -> None:
    reasons = {
        "option": [(option.why, f": {option.text!r}") for option in question.options],
        "item": [(item.why, f": {item.text!r}") for item in question.items],
        "mistake": [(mistake.why, "") for mistake in question.mistakes],
    }
    for what, given in reasons.items():
        for place, (why, text) in enumerate(given):
            if not why.strip():
                tell(f"{what} {place + 1} has no why{text}", f"{what}s", place)


def _check_mistakes(question: Question, tell: Tell) -> None:
    field = MISTAKE.get(question.kind)
    for place, mistake in enumerate(question.mistakes if field else ()):
        given = [name for name in MISTAKE.values() if getattr(mistake, name) is not None]
        if given != [field]:
            what = " and ".join(given) or "no answer"
            tell(f"mistake {place + 1} has {what}: give {field} and why", "mistakes", place)


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
        ids = ", ".join(activity.places()) if isinstance(activity, Lesson) else ""
        hint = f"; its blocks are {ids}" if ids else ""
        checking.error(f"{name}: there is no block {place}{hint}", file, line)


def _check_options(question: Question, tell: Tell) -> None:
    if len(question.options) < 2:
        tell(f"it has {len(question.options)} options: give two or more")
    for place, option in enumerate(question.options):
        if not option.text.strip():
            tell(f"option {place + 1} has no text", "options", place)
    _check_twice([option.text for option in question.options], "option", tell)


def _check_number(question: Question, tell: Tell) -> None:
    if question.fact and question.answer is not None:
        tell("it has an answer and a fact: keep one of them")
    if question.tolerance < 0:
        tell(f"tolerance = {question.tolerance:g}: how far off still counts as right, 0 or more", "tolerance")


def _check_text(question: Question, tell: Tell) -> None:
    for text in question.accept:
        if "{" in text or "}" in text:
            tell(f"accept has {text!r}: facts aren't filled in there, and nobody types braces", "accept")
    for place, mistake in enumerate(question.mistakes):
        if mistake.text is not None and ("{" in mistake.text or "}" in mistake.text):
            message = f"the mistake {mistake.text!r}: facts aren't filled in there, and nobody types braces"
            tell(message, "mistakes", place)


def _check_items(question: Question, tell: Tell) -> None:
    if len(question.items) < 3:
        tell(f"it has {len(question.items)} items to put in order: give three or more")
    _check_twice([item.text for item in question.items], "item", tell)


def _check_shape(question: Question, tell: Tell) -> None:
    if not question.code.strip() or not question.ask.strip():
        tell("it needs code to run, and ask: the expression whose shape is asked for")


def _check_twice(texts: list[str], what: str, tell: Tell) -> None:
    plain = [" ".join(_PLAIN.sub("", text.lower()).split()).rstrip(".") for text in texts]
    for text in {text for text in plain if plain.count(text) > 1}:
        tell(f"two {what}s are the same: {text!r}")


_CHECKS = {
    "single": _check_options,
    "multiple": _check_options,
    "numeric": _check_number,
    "text": _check_text,
    "order": _check_items,
    "shape": _check_shape,
}
