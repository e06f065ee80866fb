"""The functions by name, and calls of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from headwise.study.computed import (
    arithmetic,
    attention,
    layers,
    positions,
    table1,
    table3,
    training,
)

ROOMS = (arithmetic, attention, layers, positions, table1, table3, training)


def functions() -> dict[str, Callable[..., int | float]]:
    """The functions that facts may name, by name."""
    return {
        name: found
        for room in ROOMS
        for name, found in vars(room).items()
        if inspect.isfunction(found) and found.__module__ == room.__name__ and not name.startswith("_")
    }


def compute(function: str, arguments: Mapping[str, object]) -> int | float:
    """What the function of this name gives for these arguments.

    Raises:
        ValueError: no such function, arguments it doesn't take or can't use.
    """
    found = functions().get(function)
    if found is None:
        raise ValueError(
            f"headwise.study.computed has no function {function!r}; it has {', '.join(sorted(functions()))}"
        )
    signature = inspect.signature(found)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise ValueError(f"{function}{signature} can't be called so: {error}") from None
    try:
        return found(**arguments)
    except (TypeError, ArithmeticError, IndexError) as error:
        raise ValueError(f"{function} can't compute with {dict(arguments)}: {error}") from None
