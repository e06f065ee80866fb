"""Facts of the guide, for visuals that show what the paper prints."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import headwise
from headwise.study.visuals.base import Facts

GUIDE = "attention-is-all-you-need"


def guide_folder() -> Path:
    """The folder of the guide that headwise carries: beside the sources of a checkout, else in the package.

    Raises:
        ValueError: it is in neither place.
    """
    package = Path(headwise.__file__).parent
    places = (package.parents[1] / "guides" / GUIDE, package / "guides" / GUIDE)
    for place in places:
        if place.is_dir():
            return place
    raise ValueError(
        f"the guide {GUIDE!r} is neither in {places[0]} nor in {places[1]}: install headwise again"
    )


def value(facts: Facts | None, name: str) -> Any:
    """The value of a fact.

    Raises:
        ValueError: the guide has no such fact.
    """
    given = _carried() if facts is None else facts
    if name not in given:
        raise ValueError(f"the guide has no fact {name!r}: add it to facts.toml")
    found = given[name]
    return getattr(found, "value", found)


def optional(facts: Facts | None, name: str) -> Any:
    """The value of a fact, None where the guide has none."""
    given = _carried() if facts is None else facts
    return value(given, name) if name in given else None


@cache
def _carried() -> dict[str, Any]:
    with (guide_folder() / "facts.toml").open("rb") as file:
        return {name: entry["value"] for name, entry in tomllib.load(file).items()}
