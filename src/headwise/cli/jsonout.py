"""The same facts for programs. docs/see.md describes the fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwise._version import __version__
from headwise.cli.classify import ALSO, BROAD, MOSTLY, TIMES_EVEN
from headwise.cli.look import HeadFacts, Seen

SCHEMA = 1


def as_json(seen: Seen, chosen: Sequence[HeadFacts], *, origin: str, pairs: bool) -> dict[str, Any]:
    """A dictionary of plain numbers, strings and lists.

    Args:
        chosen: the heads to include.
        pairs: also give the strongest keys of every token of these heads.
    """
    reading = seen.reading
    return {
        "schema": SCHEMA,
        "headwise": __version__,
        "model": {
            "name": seen.model,
            "layers": seen.layers,
            "heads": seen.heads,
            "d_k": seen.d_k,
            "limit": seen.limit,
        },
        "text": {
            "origin": origin,
            "tokens": list(reading.tokens),
            "special": list(reading.special),
            "unknown": seen.unknown,
            "whole": reading.whole,
            "cut": reading.cut,
            "windows": len(reading.windows),
        },
        "rules": {"mostly": MOSTLY, "also": ALSO, "times_even": TIMES_EVEN, "broad": BROAD},
        "even": rounded(seen.even),
        "row_sum_error": seen.row_sum_error,
        "heads": [_head(seen, facts, pairs=pairs) for facts in chosen],
    }


def _head(seen: Seen, facts: HeadFacts, *, pairs: bool) -> dict[str, Any]:
    strongest = facts.strongest
    found: dict[str, Any] = {
        "layer": facts.layer,
        "head": facts.head,
        "kind": facts.verdict.kind,
        "words": facts.verdict.words,
        "shares": rounded(facts.shares),
        "entropy_bits": round(facts.entropy, 6),
        "evenness": round(facts.evenness, 6),
        "distance": round(facts.distance, 6),
        "strongest": {
            "query": _place(seen, strongest.query),
            "key": _place(seen, strongest.key),
            "weight": round(strongest.weight, 6),
        },
    }
    if pairs:
        keys = seen.top_keys[facts.layer, facts.head].tolist()
        weights = seen.top_weights[facts.layer, facts.head].tolist()
        found["pairs"] = [
            {
                "query": query,
                "keys": [key for key in keys[query] if key >= 0],
                "weights": [
                    round(weight, 6)
                    for key, weight in zip(keys[query], weights[query], strict=True)
                    if key >= 0
                ],
            }
            for query in range(len(keys))
        ]
    return found


def rounded(shares: dict[str, float | None]) -> dict[str, float | None]:
    return {kind: None if share is None else round(share, 6) for kind, share in shares.items()}


def _place(seen: Seen, place: int) -> dict[str, Any]:
    return {"index": place, "token": seen.reading.tokens[place]}
