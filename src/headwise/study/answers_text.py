"""What a learner typed, brought into the form in which it is compared: words, numbers, shapes.

static/typed.js does the same in the browser; tests/study/grading holds both to the same cases.
"""

from __future__ import annotations

import math
import re
import unicodedata

LONGEST = 200
"""Characters of a typed answer: no right answer is longer."""

KEPT = frozenset("+*/=<>%√")
ARTICLES = frozenset(("a", "an", "the"))
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "’": "'"})
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([,_' ])\d{3}(?:\1\d{3})*(?:\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")


class NotAnAnswer(ValueError):
    """What was given can't be graded: it is told to the learner, and counts as no attempt."""


def words(text: str) -> str:
    """Without case, accents, punctuation, articles and spaces: "The Multi-Head attention." is
    "multiheadattention". A minus before a word or number stays, as "minus"."""
    text = text[: LONGEST * 4].translate(_SIGNS).replace("∞", "infinity")
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    text = re.sub(r"(^|[\s(\[=,])-(?=[^\W_])", r"\1minus ", text)
    kept = "".join(
        one if unicodedata.category(one)[0] in "LN" or one in KEPT or one == "'" else " "
        for one in text
        if unicodedata.category(one) != "Mn"
    ).replace("'", "")
    parts = kept.split()
    return "".join(part for part in parts if part not in ARTICLES) or "".join(parts)


def number(text: str, unit: str = "") -> float:
    """The number that a text means: 1,048,576; 1 048 576; 0,1; -2.5; 1e-9; 10^-9; 2^20; 1/8; 3 × 10¹⁸; 64 %.

    Args:
        unit: what the question counts in; it may follow the number.

    Raises:
        NotAnAnswer: the text means no number; the message says how to write one.
    """
    given = " ".join(text.split())
    if not given:
        raise NotAnAnswer("Write a number first.")
    if len(given) > LONGEST:
        raise NotAnAnswer(f"That is longer than {LONGEST} characters: write the number alone.")
    spelt = re.sub("[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: "^" + found[0].translate(_RAISED), given)
    spelt = unicodedata.normalize("NFKC", spelt).translate(_SIGNS).lower().replace("**", "^").strip()
    counted = unicodedata.normalize("NFKC", unit).lower().strip()
    factor = 1.0
    if counted and spelt.endswith(counted):
        spelt = spelt[: -len(counted)]
    elif spelt.endswith("%"):
        spelt, factor = spelt[:-1], 0.01
    spelt = re.sub(r"(?<=\d)\s*x\s*(?=\d)", "*", spelt.strip())
    try:
        value = factor * _product(spelt)
    except (ValueError, OverflowError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        rest = f", or with its unit ({unit})" if unit else ""
        raise NotAnAnswer(f"“{given}” is no number: write it as 512, 0.5, 1e-9 or 2^20{rest}.")
    return value


def _product(text: str) -> float:
    value = 1.0
    for factor in text.split("*"):
        first, *divisors = factor.split("/")
        value *= _power(first)
        for divisor in divisors:
            value /= _power(divisor)
    return value


def _power(text: str) -> float:
    base, *exponent = text.split("^", 1)
    if not exponent:
        return _plain(base)
    raised = _plain(exponent[0].strip().removeprefix("(").removesuffix(")"))
    if abs(raised) > 400:
        raise OverflowError(text)
    found = _plain(base) ** raised
    if isinstance(found, complex):
        raise ValueError(text)
    return float(found)


def _plain(text: str) -> float:
    text = text.strip()
    if _GROUPED.fullmatch(text):
        return float(re.sub("[,_' ]", "", text))
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    if _PLAIN.fullmatch(text):
        return float(text)
    raise ValueError(text)


def shape(text: str) -> list[int]:
    """The sizes that a text lists: (2, 7, 512); [2,7,512]; 2 x 7 x 512; torch.Size([2, 7, 512]); () is a
    scalar's.

    Raises:
        NotAnAnswer: it lists none.
    """
    given = " ".join(text.split())
    if not given:
        raise NotAnAnswer("Write a shape first, such as 2, 7, 512.")
    inner = unicodedata.normalize("NFKC", given[: LONGEST * 2]).translate(_SIGNS).lower()
    inner = re.sub(r"^(torch\.)?size", "", inner.strip())
    bare = re.sub(r"[()\[\]{}]", " ", inner).strip()
    if not bare and inner.strip():
        return []
    parts = [part for part in re.split(r"[\s,;*x]+", bare) if part]
    if not parts or any(not re.fullmatch("[0-9]{1,12}", part) for part in parts):
        raise NotAnAnswer(f"“{given[:60]}” is no shape: write its sizes, such as 2, 7, 512.")
    return [int(part) for part in parts]
