"""Numbers that are typed although facts.toml has them."""

from __future__ import annotations

import re

from headwise.study.check.checking import Checking

_NUMBER = re.compile(r"(?<![\w.,/#-])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w/-]|[.,]\d)")


def check_numbers(checking: Checking) -> None:
    """A number in prose that is a fact's should be named: {{fact:...}}. Small and round ones may be
    examples, and so may powers of two that no passage states; the rest is a guess, so it warns. What sources
    say is told in their words, numbers and all."""
    known: dict[float, str] = {}
    for fact in checking.guide.facts.values():
        if isinstance(fact.value, int | float) and telling(fact.value, cited=fact.how == "cited"):
            known.setdefault(float(fact.value), fact.id)
    for text, found in checking.texts:
        for piece in found if text.scope else ():
            if piece.kind != "text":
                continue
            prose = re.sub(r"\{\{[^}]*\}\}", "", piece.content)
            for match in _NUMBER.finditer(prose):
                name = known.get(float(match["number"].replace(",", "")))
                if name:
                    message = (
                        f"{match['number']} is typed, and is the value of {name}: if it is that number, "
                    )
                    message += f"write {{{{fact:{name}}}}} or {{{{value:{name}}}}}"
                    checking.warn(message, text.file, piece.line)


def telling(value: float, *, cited: bool) -> bool:
    """Whether a number says by itself what it is: it has three significant digits, or two and a size of ten
    thousand or more."""
    if float(value).is_integer():
        whole = str(abs(int(value)))
        digits = len(whole.rstrip("0"))
        power_of_two = int(value) > 0 and int(value) & (int(value) - 1) == 0
        return (digits >= 3 and (cited or not power_of_two)) or (digits >= 2 and len(whole) >= 5)
    return len(repr(abs(value)).partition("e")[0].replace(".", "").lstrip("0")) >= 3
