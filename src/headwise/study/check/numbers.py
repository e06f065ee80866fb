"""Numbers that are typed although facts.toml has them."""

from __future__ import annotations

import re

from headwise.study.check.checking import Checking

_NUMBER = re.compile(r"(?<![\w.,/#-])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w/-]|[.,]\d)")


def check_numbers(checking: Checking) -> None:
    """A number in prose that is a fact's, and has at least three digits (a small one may well be an example),
    should be named: {{fact:...}}. This is a guess, so it warns."""
    known: dict[float, list[str]] = {}
    for fact in checking.guide.facts.values():
        if isinstance(fact.value, int | float) and digits(f"{fact.value!r}") >= 3:
            known.setdefault(float(fact.value), []).append(fact.id)
    for text, found in checking.texts:
        for piece in found:
            if piece.kind != "text":
                continue
            for match in _NUMBER.finditer(re.sub(r"\{\{[^}]*\}\}", "", piece.content)):
                typed = match["number"].replace(",", "")
                names = known.get(float(typed))
                if names and digits(typed) >= 3:
                    checking.warn(
                        f"{match['number']} is typed, and is the value of {names[0]}: if it is that number, "
                        f"write {{{{fact:{names[0]}}}}} or {{{{value:{names[0]}}}}}",
                        text.file,
                        piece.line,
                    )


def digits(number: str) -> int:
    """The significant digits of a number as it is typed; the zeros that end a whole number count."""
    mantissa = number.partition("e")[0].lstrip("-")
    return len(mantissa.removesuffix(".0").replace(".", "").lstrip("0"))
