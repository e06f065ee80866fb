"""What a learner typed, brought into the form in which it is compared: words, numbers, shapes.

static/answers-text.js does the same in the browser; tests/study/grading holds both to the same cases.
"""

from __future__ import annotations

import math
import re
import unicodedata

LONGEST = 200
"""Characters of a typed answer: no right answer is longer."""

SHOWN = 60
"""Characters of an answer that a message repeats."""

NUMBER_EXAMPLES = ("1234", "0.987", "6e-5", "3^7")
SHAPE_EXAMPLE = "6, 28, 496"
"""What messages and labels give as examples, which must be nobody's answer: `headwise study check` warns of a
question that one of them answers. The same stand in static/answers-text.js."""

KEPT = frozenset("+*/=<>%√")
ARTICLES = frozenset(("a", "an", "the"))
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "’": "'"})
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_RAISED_RUN = re.compile("[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}([,_' ])[0-9]{3}(?:\1[0-9]{3})*(?:\.[0-9]*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?")
_BLANKS = re.compile(r"[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
"""Blanks of Python and of JavaScript, which each know some that the other doesn't."""


def _single_blanks(text: str) -> str:
    return _BLANKS.sub(" ", text).strip(" ")


def _lowered(text: str) -> str:
    """Raised signs after a ^, so that 10⁻⁹ is 10^-9."""
    return _RAISED_RUN.sub(lambda found: "^" + found[0].translate(_RAISED), text)


_NUMBERS = f"{', '.join(NUMBER_EXAMPLES[:-1])} or {NUMBER_EXAMPLES[-1]}"


class NotAnAnswer(ValueError):
    """What was given can't be graded: it is told to the learner, and counts as no attempt."""


def words(text: str) -> str:
    """Without case, accents, punctuation, articles and spaces: "The Multi-Head attention." is
    "multiheadattention". A minus before a word or number and in an exponent stays, as "minus"; so does a
    point between digits."""
    text = _lowered(text[: LONGEST * 4]).translate(_SIGNS).replace("∞", "infinity")
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    text = re.sub(r"(^|[ (\[=,^])-(?=[^\W_])", r"\1minus ", _single_blanks(text))
    text = re.sub(r"(?<![0-9])\.|\.(?![0-9])", " ", text)
    kept = "".join(
        one if unicodedata.category(one)[0] in "LN" or one in KEPT or one in "'." else " "
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
    given = _single_blanks(text)
    if not given:
        raise NotAnAnswer("Write a number first.")
    if len(given) > LONGEST:
        raise NotAnAnswer(f"That is longer than {LONGEST} characters: write the number alone.")
    spelt = unicodedata.normalize("NFKC", _lowered(given)).translate(_SIGNS).lower()
    spelt = spelt.replace("**", "^").strip(" ")
    counted = _single_blanks(unicodedata.normalize("NFKC", unit).lower())
    factor = 1.0
    if counted and spelt.endswith(counted):
        spelt = spelt[: -len(counted)]
    elif spelt.endswith("%"):
        spelt, factor = spelt[:-1], 0.01
    spelt = re.sub("(?<=[0-9]) *x *(?=[0-9])", "*", spelt.strip(" "))
    try:
        value = factor * _product(spelt)
    except (ValueError, OverflowError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        rest = f"alone or with the unit of this question, {unit}" if unit else "without words or a unit"
        raise NotAnAnswer(f"“{_shortened(given)}” is no number: write it as {_NUMBERS}, {rest}.")
    return value


def _shortened(text: str) -> str:
    """What was typed as a message repeats it."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _product(text: str) -> float:
    value = 1.0
    for factor in text.split("*"):
        first, *divisors = factor.split("/")
        value *= _power(first)
        for divisor in divisors:
            value /= _power(divisor)
    return value


def _power(text: str) -> float:
    """A power binds tighter than a sign: -2^2 is -4, (-2)^2 is 4."""
    base, *exponent = text.strip(" ").split("^", 1)
    if not exponent:
        return _plain(base)
    raised = _plain(exponent[0].strip(" ").removeprefix("(").removesuffix(")"))
    if abs(raised) > 400:
        raise OverflowError(text)
    base, sign = base.strip(" "), 1.0
    if base.startswith("(") and base.endswith(")"):
        base = base[1:-1]
    elif base[:1] in ("-", "+"):
        base, sign = base[1:].strip(" "), -1.0 if base[0] == "-" else 1.0
        if base[:1] in ("-", "+"):
            raise ValueError(text)
    found = _plain(base) ** raised
    if isinstance(found, complex):
        raise ValueError(text)
    return sign * float(found)


def _plain(text: str) -> float:
    text = text.strip(" ")
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
    given = _single_blanks(text)
    if not given:
        raise NotAnAnswer(f"Write a shape first, such as {SHAPE_EXAMPLE}.")
    inner = unicodedata.normalize("NFKC", given[: LONGEST * 2]).translate(_SIGNS).lower()
    inner = re.sub(r"^(torch\.)?size", "", inner.strip(" "))
    bare = re.sub(r"[()\[\]{}]", " ", inner).strip(" ")
    if not bare and inner.strip(" "):
        return []
    parts = [part for part in re.split("[ ,;*x]+", bare) if part]
    if not parts or any(not re.fullmatch("[0-9]{1,12}", part) for part in parts):
        raise NotAnAnswer(f"“{_shortened(given)}” is no shape: write its sizes, such as {SHAPE_EXAMPLE}.")
    return [int(part) for part in parts]
