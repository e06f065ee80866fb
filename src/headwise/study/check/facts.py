"""Facts: those named exist, and each one that the library computes still comes out as it says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from headwise.study.check.checking import Checking
from headwise.study.computed import compute
from headwise.study.content import Fact
from headwise.study.content.facts import LOWERED
from headwise.study.render.fill import NAMED

BRACES = re.compile(r"\{\{[^{}]*\}\}")

_SHOWN = re.compile(
    r"(?<![\w.,])(?P<number>[+−-]?\d[\d,]*(?:\.\d+)?)(?:/(?P<over>\d+))?"
    r"(?:\s×\s10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
    r"(?:\s(?P<size>thousand|million|billion|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\b)?"
)
_POWER = re.compile(r"[^\d]*?10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_SIZES = {"thousand": 1e3, "million": 1e6, "billion": 1e9} | {
    f"{letter}{end}": float(base**place)
    for end, base in (("B", 1000), ("iB", 1024))
    for place, letter in enumerate("kMGT" if end == "B" else "KMGT", 1)
}


def check_facts(checking: Checking) -> None:
    """{{fact:...}} names a fact; a computed one has a function that gives it to its digits; a measured one
    has its command; what prose shows of a number is that number."""
    for fact in checking.guide.facts.values():
        _check_fact(checking, fact)
    facts = checking.guide.facts
    for text, _ in checking.texts:
        for number, line in enumerate(text.text.splitlines(), start=text.line):
            for match in BRACES.finditer(line):
                named = NAMED.fullmatch(match[0])
                if named is None and "fact" in match[0]:
                    checking.error(
                        f"{match[0]} is written {{{{fact:id}}}} or {{{{value:id}}}}", text.file, number
                    )
                elif named is not None and named["id"] not in facts:
                    checking.error(f"facts.toml has no {named['id']}", text.file, number)


def _check_fact(checking: Checking, fact: Fact) -> None:
    file = checking.file("facts.toml")

    def wrong(message: str) -> None:
        checking.error(f"{fact.id}: {message}", file, fact.line)

    if fact.digits is not None and not 1 <= fact.digits <= 17:
        wrong(f"digits = {fact.digits}: give significant digits from 1 to 17, or none")
        return
    if isinstance(fact.value, float) and not math.isfinite(fact.value):
        wrong(f"value = {fact.value} is no number to show")
        return
    if fact.how == "computed":
        _recompute(wrong, fact)
    elif fact.function or fact.arguments:
        wrong(f'it has a function, but how = "{fact.how}": write how = "computed"')
    if fact.how == "measured" and not fact.command.strip():
        wrong("it was measured, so it needs the command that measured it")
    if fact.how != "measured" and fact.command:
        wrong(f'it has a command, but how = "{fact.how}": write how = "measured"')
    if fact.show is not None and not isinstance(fact.value, str) and not shows(fact.show, fact.value):
        wrong(f"show = {fact.show!r} is another number than value = {fact.value!r}")


def _recompute(tell: Callable[[str], None], fact: Fact) -> None:
    if not fact.function:
        tell("it is computed, so it needs the function of headwise.study.computed")
        return
    if isinstance(fact.value, str):
        tell(f"value = {fact.value!r} is a text, which no function computes")
        return
    try:
        found = compute(fact.function, fact.arguments)
    except ValueError as error:
        tell(str(error))
        return
    if not agree(fact.value, found, fact.digits):
        digits = "" if fact.digits is None else f" to {fact.digits} digits"
        tell(f"value = {fact.value!r}, but {fact.function} gives {found!r}: they must agree{digits}")


def agree(value: float, found: float, digits: int | None = None) -> bool:
    """Whether two numbers agree to so many significant digits; without a number, to those that `value` is
    written with (a whole number exactly)."""
    if not math.isfinite(found):
        return False
    if digits is None:
        if isinstance(value, int):
            return value == found
        digits = written_digits(value)
    if value == found:
        return True
    if found == 0:
        return False
    unit = 10.0 ** (math.floor(math.log10(abs(found))) - digits + 1)
    return abs(value - found) <= unit / 2 * (1 + 1e-9)


def written_digits(value: float) -> int:
    """The significant digits that a number is written with: 1 for 0.1, 4 for 61.25."""
    mantissa = repr(abs(value)).partition("e")[0]
    whole, _, rest = mantissa.partition(".")
    digits = whole + ("" if rest == "0" else rest)
    return max(1, len(digits.lstrip("0")))


def shows(text: str, value: float) -> bool:
    """Whether the first number of a text is this one, rounded to the digits that the text has. A text
    without a number says nothing, and so nothing wrong."""
    if alone := _POWER.match(text):
        return math.isclose(float(f"1e{alone['power'].translate(LOWERED)}"), value, rel_tol=1e-9)
    found = _SHOWN.search(text)
    if found is None:
        return True
    number = found["number"].replace(",", "").replace("−", "-")
    if found["over"]:
        return math.isclose(float(number) / float(found["over"]), value, rel_tol=1e-9)
    size = _SIZES.get(found["size"] or "", 1.0)
    if found["power"]:
        size *= float(f"1e{found['power'].translate(LOWERED)}")
    places = len(number.partition(".")[2])
    return abs(float(number) * size - value) <= size * 10.0**-places / 2 * (1 + 1e-9)
