"""Builds a guide's pages for the server: none of them holds an answer; the keys are handed back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwise.study import site, versions
from headwise.study.content import Deck, load_guide
from headwise.study.maths import StoredMaths


def build(folder: Path, out: Path) -> dict[str, Any]:
    """Write the pages of the guide in a folder, and of all its versions, into another, which is empty.

    Returns:
        What `pages.Shown` holds beside them, as JSON has it.

    Raises:
        GuideError: something in the guide can't be shown, or a version isn't as it was.
    """
    guide = load_guide(folder)
    files = site.render_site(guide, "server")
    keys = {"current": site.keys(guide, StoredMaths.of(folder))}
    for number in versions.numbers(folder):
        for name, content in versions.files(folder, number, answers=False).items():
            files[f"v/{number}/{name}"] = content
        held = versions.read(folder, number, "answers.json")
        keys[str(number)] = json.loads(held) if held is not None else {}
    site.write(files, out)
    return {
        "id": guide.id,
        "title": guide.title,
        "keys": keys,
        "decks": {
            deck.id: [(card.id, card.rev) for card in deck.cards]
            for deck in guide.activities.values()
            if isinstance(deck, Deck)
        },
        "activities": list(guide.activities),
    }
