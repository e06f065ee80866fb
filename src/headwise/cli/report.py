"""The report: one HTML file that needs nothing else, neither network nor other files.

The weights travel as whole thousandths, compressed; the page draws and names them. Text reaches the
page through Jinja's escaping or as JSON in which `<`, `>` and `&` are written as escapes, so no token
can become markup. A content security policy names the page's own style and script by their hashes and
forbids everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwise.cli.classify import MEANINGS, NAMES, RULES
from headwise.cli.look import HeadFacts, Seen
from headwise.cli.page import assemble, pack, packed
from headwise.cli.table import notes

SCRIPTS = ("base.js", "data.js", "palette.js", "grid.js", "map.js", "head.js", "page.js")
TELLING = ("same", "punctuation", "nearby", "previous", "next", "itself")
"""Kinds of heads by how much a map of theirs shows beyond a plain line; resting places say nothing."""
BUDGET = 400_000  # strongest keys that a page carries, over all heads and tokens


def render(seen: Seen, *, text: str, origin: str, start: tuple[int, int] | None = None) -> str:
    """The whole page.

    Args:
        text: the text as it was given.
        origin: where it came from.
        start: layer and head to open with; None opens the most telling one.
    """
    first = start or telling(seen.facts)
    exact = seen.weights is not None
    most = _keys_per_token(seen)
    return assemble(
        "report.html.j2",
        styles=("report.css",),
        scripts=SCRIPTS,
        seen=seen,
        exact=exact,
        text=text if not seen.reading.cut else None,
        origin=origin,
        notes=notes(seen),
        kinds=_kinds(seen),
        names=NAMES,
        meanings=MEANINGS,
        rules=RULES,
        layers=[[seen.of(layer, head) for head in range(seen.heads)] for layer in range(seen.layers)],
        data=_data(seen, first, most),
        weights=pack(seen.weights if seen.weights is not None else seen.map),
        top_keys="" if exact else packed(seen.top_keys[..., :most].clamp(min=0)),
        top_weights="" if exact else pack(seen.top_weights[..., :most]),
    )


def telling(heads: Sequence[HeadFacts]) -> tuple[int, int]:
    """The head that says most about the text: one of the first kind of `TELLING` that any head is named
    after, and of those the one with the largest share. Where none is, the one that attends least evenly."""
    for kind in TELLING:
        own = [facts for facts in heads if facts.verdict.kind == kind]
        if own:
            best = max(own, key=lambda facts: facts.shares[kind] or 0.0)
            return best.layer, best.head
    best = min(heads, key=lambda facts: facts.evenness)
    return best.layer, best.head


def _keys_per_token(seen: Seen) -> int:
    """Fewer keys for each token of a very long text, so that the page stays small."""
    queries = seen.layers * seen.heads * len(seen.reading.tokens)
    return min(seen.top_keys.shape[-1], max(1, BUDGET // queries))


def _data(seen: Seen, first: tuple[int, int], most: int) -> dict[str, Any]:
    return {
        "layers": seen.layers,
        "heads": seen.heads,
        "tokens": list(seen.reading.tokens),
        "special": [int(flag) for flag in seen.reading.special],
        "exact": seen.weights is not None,
        "cells": seen.map.shape[-1],
        "top": most,
        "most": round(seen.most_bits, 4),
        "even": seen.even,
        "first": list(first),
        "names": NAMES,
        "meanings": MEANINGS,
        "facts": [
            {
                "kind": facts.verdict.kind,
                "words": facts.verdict.words,
                "also": [list(pair) for pair in facts.verdict.also],
                "shares": {
                    kind: None if share is None else round(share, 4) for kind, share in facts.shares.items()
                },
                "entropy": round(facts.entropy, 3),
                "evenness": round(facts.evenness, 4),
                "distance": round(facts.distance, 2),
                "strongest": [facts.strongest.query, facts.strongest.key, round(facts.strongest.weight, 3)],
            }
            for facts in seen.facts
        ],
    }


def _kinds(seen: Seen) -> list[tuple[str, int]]:
    """Each kind of head that occurs, and how often."""
    found = [facts.verdict.kind for facts in seen.facts]
    return [(kind, found.count(kind)) for kind in NAMES if kind in found]
