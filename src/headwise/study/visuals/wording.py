"""Numbers in words. static/visuals/words.js writes each of them in the same letters."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from headwise.study.content.facts import RAISED

MINUS, SPACE = "−", "\u00a0"  # a true minus, a space that keeps a number and its unit on one line


def fixed(value: float, places: int) -> str:
    """With so many decimal places and commas between thousands: "1,048,576.0"; halves are rounded away
    from 0, as a browser does."""
    exact = Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return f"{MINUS if exact < 0 else ''}{abs(exact):,f}"


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return fixed(value, 0)


def percent(share: float, places: int = 0) -> str:
    """A share of 1 in per cent: "61 %"."""
    return f"{fixed(100 * share, places)}{SPACE}%"


def power(value: float, places: int = 1) -> str:
    """A positive number as a power of ten: "3.3 × 10¹⁸"."""
    if value == 0:
        return "0"
    exact = Decimal(value)
    exponent = exact.adjusted()
    digits = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    if digits >= 10:
        exponent += 1
        digits = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return f"{digits}{SPACE}×{SPACE}10{raised(exponent)}"


def raised(exponent: int) -> str:
    """A whole number in raised digits."""
    return str(exponent).translate(RAISED)


def size(value: float) -> str:
    """A positive number of any size in few letters: in full up to a million, beyond as a power of ten."""
    if value < 1e6:
        return fixed(value, 0 if value >= 100 or float(value).is_integer() else 2)
    return power(value, 2)


def listing(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
