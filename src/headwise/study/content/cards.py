"""Decks of flashcards."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from headwise.study.content.listed import Listed

CLOZE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
"""What a cloze hides."""


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One card.

    Attributes:
        id: unique over the whole guide, and kept for ever: a learner's reviews hang on it.
        rev: rises when the answer changes, not when a word does.
        kind: "basic": `front` asks, `back` answers; "cloze": what [[ ]] encloses in `text` is hidden.
        why: shown with the answer.
        sources, reason: the places it rests on; why there are none, where there are none.
        block: "activity#block", where it is taught.
        line: in the deck's file.
    """

    id: str
    kind: Literal["basic", "cloze"] = "basic"
    rev: int = 1
    front: str = ""
    back: str = ""
    text: str = ""
    why: str = ""
    sources: list[str] = []
    reason: str = ""
    block: str = ""
    line: int = 0


class Deck(Listed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cards that are learnt together."""

    cards: list[Card]
    type: Literal["cards"] = "cards"

    def places(self) -> list[str]:
        return [one.id for one in self.cards]
