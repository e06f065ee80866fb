"""Texts and formulas in the form in which they are compared: what converters do differently is left out."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_ALIKE = str.maketrans(
    {
        "‘": "'",
        "’": "'",
        "‛": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "‐": "-",
        "‑": "-",
        "‒": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "\u00ad": None,  # soft hyphen
        "\u200b": None,  # zero-width space
        "\u2060": None,
        "\ufeff": None,
    }
)
_STYLES = re.compile(
    r"\\(?:displaystyle|textstyle|scriptstyle|left|right|big|Big|bigg|Bigg|limits|nolimits|quad|qquad)(?![a-zA-Z])"
    r"|\\[,;:!> ]|[{}]|\\(?:mathrm|operatorname|text|textrm|mathop|mathit|mbox)(?![a-zA-Z])\*?|%\n|~"
)
_MATHS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\\\(.*?\\\)", re.DOTALL)


def plain_text(text: str) -> str:
    """A text without its spaces, where quotes and dashes of all kinds are alike."""
    return "".join(unicodedata.normalize("NFKC", text).translate(_ALIKE).split())


def plain_tex(tex: str) -> str:
    """TeX without spaces, braces and what only says how it is set."""
    return "".join(_STYLES.sub("", tex).split())


def plain_quote(quote: str) -> list[str]:
    """A quote as it is looked for: the pieces between its formulas and its dots of omission."""
    pieces = re.split(r"\[?(?:…|\.\.\.)\]?", _MATHS.sub("…", quote))
    return [plain for piece in pieces if (plain := plain_text(piece))]


def digest(plain: str) -> str | None:
    """The hash of a passage in this form; None for an empty one."""
    return hashlib.sha256(plain.encode()).hexdigest() if plain else None


def holds(passage: str, quote: str) -> bool:
    """Whether a passage, in its plain form, holds the pieces of a quote one after another."""
    place = 0
    for piece in plain_quote(quote):
        found = passage.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return True
