"""How many of what, in words."""

from __future__ import annotations

from collections.abc import Mapping


def count(number: int, what: str) -> str:
    """ "1 head", "2 heads"; `what` is one of them."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def counted(counts: Mapping[str, int]) -> str:
    """ "2 reviews, 1 mark"; the kinds are named as several of them are."""
    return ", ".join(count(number, kind.removesuffix("s")) for kind, number in counts.items())
