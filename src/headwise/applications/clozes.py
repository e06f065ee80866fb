"""Clozes ask again: other words of the same sentence masked, so that a model learns more from each text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwise.applications.questions import BLANK, WORD, Question, cloze, masked, whole_words


def others(question: Question, answers: Collection[str]) -> list[Question]:
    """The clozes that the sentence of this one could also be: each word of it masked that stands in the text
    and is among `answers` (in small letters). The question itself is the first of them.

    A question without a mask has no other.
    """
    parts = question.question.split(BLANK)
    if len(parts) == 1:
        return [question]
    word = question.answers[0]
    sentence = word.join(parts)
    found = [question]
    seen = {word.lower()}
    for match in WORD.finditer(sentence):
        other = match[0].lower()
        if other in seen or other not in answers:
            continue
        seen.add(other)
        spans = whole_words(question.context, other)
        if spans:
            found.append(cloze(masked(sentence, other), question.context, spans, question.group))
    return found


def asked_for(questions: Sequence[Question]) -> frozenset[str]:
    """All answers of clozes, in small letters."""
    return frozenset(one.answers[0].lower() for one in questions if BLANK in one.question)
