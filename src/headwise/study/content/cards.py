"""Decks of flashcards."""

from __future__ import annotations

from typing import Literal

import msgspec


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


class Deck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cards that are learnt together."""

    id: str
    title: str
    cards: list[Card]
    minutes: int = 0
    needs: list[str] = []
    summary: str = ""
    file: str = ""
    line: int = 1
    type: Literal["cards"] = "cards"
