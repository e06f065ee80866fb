"""What a visual hands to a page, and how a visual is found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

Inputs = Mapping[str, Any]
"""What the reader chose: the name of each input and its value (a number, True or False, or a text)."""

Facts = Mapping[str, Any]
"""Facts of a guide by their id: plain values, or objects that have a `value`."""

NAMES = (
    "dot_product_by_hand",
    "saturation",
    "mask",
    "split_join",
    "sentence_heads",
    "position_waves",
    "schedule",
    "label_smoothing",
    "crossovers",
    "table3",
    "cost_bleu",
)
"""The modules of this package that make a visual, in teaching order."""


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture, as text: what a page shows without a script, and to whoever asks.

    The first cell of each row names the row.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.caption!r}, row {number} has {len(row)} cells for {len(self.columns)} "
                    "columns: give one for each"
                )


@dataclass(frozen=True)
class VisualData:
    """Everything that a visual needs from Python.

    Args:
        data: goes to the browser as JSON.
        table: the numbers at the first values of the inputs.
        words: what can be seen at these values.
    """

    data: dict[str, Any]
    table: Table
    words: str


class VisualModule(Protocol):
    """What each module of `NAMES` offers.

    DEFAULTS holds the first value of every input, as in the visual's TOML file. `compute` gives the numbers
    of the picture for some inputs, by the library; the browser's `compute` gives the same.
    """

    DEFAULTS: Mapping[str, Any]

    def data(self, facts: Facts | None = None) -> VisualData: ...

    def compute(self, inputs: Inputs) -> dict[str, Any]: ...


def load(name: str) -> VisualModule:
    """The module of a visual, by the name that its TOML file gives as `data`.

    Raises:
        ValueError: there is no such visual.
    """
    if name not in NAMES:
        raise ValueError(f"there is no visual {name!r}: the visuals are {', '.join(NAMES)}")
    return cast(VisualModule, import_module(f"headwise.study.visuals.{name}"))


def make(name: str, facts: Facts | None = None) -> VisualData:
    """The numbers of a visual, by its name.

    Args:
        facts: those of the guide that the visual stands in; None: those of the guide that headwise carries.

    Raises:
        ValueError: there is no such visual, or a fact it needs is missing.
    """
    return load(name).data(facts)
