"""What a reader calls a place of a paper. Only numbers go into it: none of the paper's words are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwise.study.paper.page import ABSTRACT, Passage

_NUMBER = re.compile(r"(?:appendix\s+)?([A-Za-z]?\d*(?:\.\d+)*)", re.IGNORECASE)


def label(passage: Passage, passages: Mapping[str, Passage]) -> str:
    """ "section 3.2.1"; "3.2.1, paragraph 3"; "equation 1"; "figure 2"; "reference 13"."""
    last = passage.id.rpartition(".")[2]
    place = _place(passage, passages)
    count = "".join(character for character in last if character.isdigit())
    if passage.id == ABSTRACT:
        return "abstract"
    if passage.kind == "section":
        return _section(passage, place, last, count)
    if passage.kind == "paragraph":
        return _within(place, f"paragraph {count}")
    if passage.kind in ("figure", "table"):
        number = passage.number.strip(" :.").lower()
        return number if number else _within(place, f"{passage.kind} {count} without a number")
    if passage.kind == "equation":
        number = passage.number.strip(" ().")
        return f"equation {number}" if number else _within(place, f"formula {last}, without a number")
    if passage.kind in ("footnote", "reference"):
        return f"{passage.kind} {count}"
    return _within(place, f"{passage.kind} {count}")


def _section(passage: Passage, place: str, last: str, count: str) -> str:
    if number := _number(passage):
        return f"appendix {number}" if number[0].isalpha() and len(number) == 1 else f"section {number}"
    if last == "bib":
        return "references"
    return (
        _within(place, f"heading {count}")
        if place
        else f"section {count} without a number".replace("  ", " ")
    )


def _place(passage: Passage, passages: Mapping[str, Passage]) -> str:
    """What it stands in: the number of the nearest section that has one, headings and lists on the way."""
    steps: list[str] = []
    parent = passage.parent
    while parent is not None:
        above = passages[parent]
        last = above.id.rpartition(".")[2]
        count = "".join(character for character in last if character.isdigit())
        if above.kind == "section":
            if number := _number(above):
                steps.append(number)
                break
            steps.append(
                "references"
                if last == "bib"
                else f"heading {count}"
                if above.parent
                else f"unnumbered section {count}"
            )
        elif above.kind in ("list", "item"):
            steps.append(f"{above.kind} {count}")
        parent = above.parent
    return ", ".join(reversed(steps))


def _number(passage: Passage) -> str:
    found = _NUMBER.fullmatch(passage.number.strip(" .:"))
    return found[1] if found else ""


def _within(place: str, what: str) -> str:
    return f"{place}, {what}" if place else what
