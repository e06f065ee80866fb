"""The key of a question: all that grading needs, as plain JSON.

A page shows options under opaque names (`shown_options`), in an order that says nothing about which is right.
The key tells which name stands for what. The server keeps it to itself; a static export writes it into
answers.json, which a page fetches when the first answer is submitted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from headwise.study import answers_text
from headwise.study.content import Guide, GuideError, Item, Option, Question
from headwise.study.content.facts import NO_BREAK, written
from headwise.study.running import shape_of

Key = dict[str, Any]
Rendering = Callable[[str], str]
"""From Markdown (facts not yet filled in) to safe HTML."""

Shown = TypeVar("Shown", Option, Item)


def shown_options(question: Question) -> list[tuple[str, Option]]:
    """The options of a single or multiple choice question under their names, in the order in which a page
    shows them. The names hang on the question's id and the option's place in the file: they stay when a word
    changes."""
    return _shown(question, question.options)


def shown_items(question: Question) -> list[tuple[str, Item]]:
    """The items of an ordering question under their names, in an order that is not the right one."""
    return _shown(question, question.items)


def names(question: Question) -> list[str]:
    """The names of options or items, in the order of the file.

    Where the order is what is asked, a name says nothing of the place: it hangs on the item's own words.
    """
    texts = [item.text for item in question.items]
    seeds = (
        [f"{text}\n{texts[:place].count(text)}" for place, text in enumerate(texts)]
        if question.kind == "order"
        else [str(place) for place in range(len(question.options))]
    )
    length = 6
    while True:  # six digits are enough unless two names are equal by chance
        found = [_name(question.id, seed)[:length] for seed in seeds]
        if len(set(found)) == len(seeds):
            return found
        length += 2


def _name(question: str, seed: str) -> str:
    return hashlib.sha256(f"{question}\n{seed}".encode()).hexdigest()


def _shown(question: Question, things: Sequence[Shown]) -> list[tuple[str, Shown]]:
    named = list(zip(names(question), things, strict=True))
    order = sorted(named, key=lambda pair: pair[0])
    if question.kind == "order" and len(order) > 1 and [pair[0] for pair in order] == names(question):
        order = order[1:] + order[:1]
    return order


def answer_keys(guide: Guide, to_html: Rendering) -> dict[str, Key]:
    """The keys of all questions by id, for answers.json.

    Args:
        to_html: what makes HTML of reasons, explanations and right answers.

    Raises:
        GuideError: a question can't be graded: no option is right, nothing is accepted, its fact is no
            number, its shape can't be computed.
    """
    return {
        question.id: answer_key(question, guide, to_html, file=guide.activity_of(question.id).file)
        for question in guide.questions().values()
    }


def answer_key(question: Question, guide: Guide | None, to_html: Rendering, *, file: str = "") -> Key:
    """The key of one question. See `answer_keys`."""
    key: Key = {
        "id": question.id,
        "rev": question.rev,
        "kind": question.kind,
        "explain": to_html(question.explain) if question.explain else "",
        "again": question.block,
    }
    if question.kind in ("single", "multiple"):
        right = _right_options(question, file)
        key["options"] = [
            {"key": name, "correct": option.correct, "why": to_html(option.why)}
            for name, option in shown_options(question)
        ]
        key["right"] = to_html(right[0] if len(right) == 1 else "\n".join(f"- {text}" for text in right))
    elif question.kind == "order":
        key["items"] = [
            {"key": name, "why": to_html(item.why) if item.why else ""}
            for name, item in zip(names(question), question.items, strict=True)
        ]
        key["right"] = to_html(
            "\n".join(f"{place}. {item.text}" for place, item in enumerate(question.items, 1))
        )
    else:
        key["mistakes"] = [_mistake(question, number, to_html) for number in range(len(question.mistakes))]
        _typed(key, question, guide, to_html, file)
    return key


def _right_options(question: Question, file: str) -> list[str]:
    right = [option.text for option in question.options if option.correct]
    if question.kind == "single" and len(right) != 1:
        raise _fault(question, f"{len(right)} options are correct: exactly one must be", file)
    if not right:
        raise _fault(
            question, "no option is correct: at least one must be, since nothing chosen is no answer", file
        )
    return right


def _typed(key: Key, question: Question, guide: Guide | None, to_html: Rendering, file: str) -> None:
    if question.kind == "text":
        if not question.accept:
            raise _fault(question, 'accept = ["..."] is missing', file)
        key["accept"] = [answers_text.words(text) for text in question.accept]
        key["right"] = to_html(question.accept[0])
    elif question.kind == "shape":
        key["shape"] = shape_of(question, file)
        key["right"] = to_html(f"`{tuple(key['shape'])}`")
    else:
        key["answer"] = _number(question, guide, file)
        key["tolerance"], key["unit"] = question.tolerance, question.unit
        unit = f"{NO_BREAK}{question.unit}" if question.unit else ""
        named = guide.facts[question.fact] if guide is not None and question.answer is None else None
        number = written(key["answer"]) if named is None else named.number  # as prose writes it: 6.988 × 10⁻⁴
        key["right"] = to_html(f"{number}{unit}")


def _number(question: Question, guide: Guide | None, file: str) -> float | int:
    value: float | int | str | None = question.answer
    if value is None and question.fact and guide is not None:
        if question.fact not in guide.facts:
            raise _fault(question, f"facts.toml has no {question.fact}", file)
        value = guide.facts[question.fact].value
    if value is None or isinstance(value, str):
        what = "" if value is None else f", and {question.fact} is {value!r}"
        raise _fault(question, f"it needs answer = a number, or fact = the id of one{what}", file)
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def _mistake(question: Question, place: int, to_html: Rendering) -> Key:
    mistake = question.mistakes[place]
    entry: Key = {"why": to_html(mistake.why)}
    if question.kind == "text" and mistake.text is not None:
        entry["text"] = answers_text.words(mistake.text)
    elif question.kind == "shape" and mistake.shape is not None:
        entry["shape"] = list(mistake.shape)
    elif mistake.value is not None:
        entry["value"] = mistake.value
    return entry


def _fault(question: Question, what: str, file: str) -> GuideError:
    return GuideError(f"{question.id}: {what}", file, question.line)
