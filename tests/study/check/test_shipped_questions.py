"""Questions and cards of the guide that comes with headwise: enough of each, and graded as they are meant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headwise.study.content import Deck, Guide, Lesson, Question, Quiz, load_guide
from headwise.study.grading import grade
from headwise.study.keys import answer_key, names
from headwise.study.running import prepare

GUIDE = Path(__file__).parents[3] / "guides" / "attention-is-all-you-need"


@pytest.fixture(scope="module")
def guide() -> Guide:
    return load_guide(GUIDE)


@pytest.fixture(scope="module")
def questions(guide: Guide) -> list[Question]:
    prepare(guide)  # the code of all of them in one process
    return list(guide.questions().values())


def test_each_quiz_has_six_to_twelve_questions_and_all_kinds_occur(
    guide: Guide, questions: list[Question]
) -> None:
    counts = {one.id: len(one.questions) for one in guide.activities.values() if isinstance(one, Quiz)}
    assert len(counts) == 7
    assert {quiz: count for quiz, count in counts.items() if not 6 <= count <= 12} == {}
    kinds = Counter(question.kind for question in questions)
    assert set(kinds) == {"single", "multiple", "numeric", "text", "order", "shape"}
    assert min(kinds.values()) >= 4


def test_every_lesson_but_the_one_that_builds_is_asked_about(guide: Guide, questions: list[Question]) -> None:
    lessons = {one.id for one in guide.activities.values() if isinstance(one, Lesson)}
    asked = {question.block.partition("#")[0] for question in questions}
    assert lessons - asked == {"build-it"}  # its exercises ask, and its code answers


def test_forty_to_sixty_cards_ask_short_things(guide: Guide) -> None:
    decks = [one for one in guide.activities.values() if isinstance(one, Deck)]
    cards = [card for deck in decks for card in deck.cards]
    assert 40 <= len(cards) <= 60
    assert {card.id for card in cards if len(card.back.split()) > 25} == set()
    assert {card.id for card in cards if not card.why and card.kind == "cloze"} == set()


def test_right_answers_are_right(guide: Guide, questions: list[Question]) -> None:
    wrong = []
    for question in questions:
        key = answer_key(question, guide, lambda text: text)
        if question.kind in ("single", "multiple"):
            pairs = zip(names(question), question.options, strict=True)
            right = [name for name, option in pairs if option.correct]
            given: str | list[str] = right[0] if question.kind == "single" else right
        elif question.kind == "order":
            given = names(question)
        elif question.kind == "numeric":
            given = repr(key["answer"])
        elif question.kind == "text":
            given = question.accept[-1]
        else:
            given = str(tuple(key["shape"]))
        if not grade(question, given, guide).correct:
            wrong.append((question.id, given))
    assert wrong == []


def test_every_foreseen_mistake_gets_its_own_reason(guide: Guide, questions: list[Question]) -> None:
    """Mistakes of a numeric question count within its tolerance: two must not lie closer than that."""
    missed = []
    for question in questions:
        for mistake in question.mistakes:
            given = mistake.text or (str(mistake.shape) if mistake.shape else repr(mistake.value))
            result = grade(question, given, guide)
            if result.correct or result.why != mistake.why:
                missed.append((question.id, given, result.why))
    assert missed == []


def test_the_shown_answer_to_a_fact_is_short(guide: Guide, questions: list[Question]) -> None:
    shown = {
        question.id: answer_key(question, guide, lambda text: text)["right"]
        for question in questions
        if question.kind == "numeric"
    }
    assert {name: right for name, right in shown.items() if len(right) > 12} == {}
    assert shown["train-peak"] == "6.988 × 10⁻⁴"
