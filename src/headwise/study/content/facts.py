"""A guide's numbers: each stands in one place, with where it comes from."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

NO_BREAK = "\N{NO-BREAK SPACE}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

Value = int | float | str


class FactEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of facts.toml.

    Attributes:
        value: the number (or a word, where what the paper gives is none).
        unit: what is counted; "" for a plain number.
        sources: the places it stands in or follows from.
        how: "cited": it stands there; "computed": `function` of headwise.study.computed gives it for
            `arguments`; "measured": `command` printed it once, on a real machine, and it is not computed
            again.
        digits: significant digits to which it must recompute; None: those that `value` is written with.
        show: how prose writes it, in place of the number and the unit.
        reason: why it has no source, where it has none.
    """

    value: Value
    unit: str = ""
    sources: list[str] = []
    how: Literal["cited", "computed", "measured"] = "cited"
    function: str = ""
    arguments: dict[str, Any] = {}
    command: str = ""
    digits: int | None = None
    show: str | None = None
    reason: str = ""


class Fact(FactEntry, frozen=True, kw_only=True):
    """A number of the paper, or one that this library computes or measured. `line` is that in facts.toml."""

    id: str
    line: int = 0

    @property
    def text(self) -> str:
        """The number with its unit, as prose writes it: what {{fact:id}} stands for."""
        if self.show is not None:
            return self.show
        if self.unit == "%":
            return f"{self.number}%"
        return f"{self.number}{NO_BREAK}{self.unit}" if self.unit else self.number

    @property
    def number(self) -> str:
        """The number alone: what {{value:id}} stands for."""
        if self.show is None:
            return written(self.value)
        if not self.unit:
            return self.show
        return self.show.removesuffix(self.unit).rstrip(f" {NO_BREAK}") or self.show


def written(value: Value) -> str:
    """A number as prose writes it: 1,048,576; 0.1; 3.3 × 10¹⁸; −2.5."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}".replace("-", "\N{MINUS SIGN}")
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that prose can write")
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        digits, power = _scientific(value)
        return f"{digits} × 10{str(power).translate(RAISED)}".replace("-", "\N{MINUS SIGN}")
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    whole, _, rest = f"{size!r}".partition(".")
    return f"{sign}{int(whole):,}.{rest}"


def _scientific(value: float) -> tuple[str, int]:
    digits, _, power = f"{value!r}".partition("e")
    if not power:
        digits, _, power = f"{value:.15e}".partition("e")
        digits = digits.rstrip("0").rstrip(".")
    return digits.removesuffix(".0"), int(power)
