"""Names of arguments that a function doesn't have, met with those that it has."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def arguments(
    elsewhere: Mapping[str, str] | None = None,
    *,
    label: str | None = None,
    by_place: str = "options are given by name",
    missing: str | None = None,
    options: Iterable[str] = (),
) -> Callable[[Function], Function]:
    """A decorator: raise a TypeError that helps where Python's own would only say "unexpected".

    The function's signature stays what it is, for people, editors and type checkers.

    Args:
        elsewhere: what to write here for the names that other libraries use.
        label: what the messages call the function. Default: its name.
        by_place: what to say of too many arguments without a name.
        missing: what to say where required ones are missing. Default: Python says it.
        options: the names that a function with **options takes besides.
    """
    told = {} if elsewhere is None else elsewhere

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        by_name = [*(p.name for p in parameters if p.kind in named), *options]
        known = frozenset(by_name)
        places = [p for p in parameters if p.kind in _BY_PLACE]
        required = [p.name for p in places if p.default is inspect.Parameter.empty]
        most, least = len(places), len(required) if missing is not None else 0
        own = 1 if places and places[0].name == "self" else 0
        name = f"{function.__qualname__.removesuffix('.__init__')}()" if label is None else label

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if known.issuperset(kwargs) and least <= len(args) <= most:
                return function(*args, **kwargs)
            if not known.issuperset(kwargs):
                raise TypeError(_unknown(name, [n for n in by_name if n != "self"], told, kwargs))
            if len(args) > most:
                raise TypeError(
                    f"{name} takes {most - own} positional argument{'s' * (most - own != 1)} "
                    f"({', '.join(p.name for p in places[own:])}), got {len(args) - own}: {by_place}."
                )
            if len(args) < least:
                lacks = [n for n in required[len(args) :] if n not in kwargs]
                if lacks:
                    raise TypeError(f"{name} lacks {', '.join(lacks)}: {missing}.")
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def _unknown(name: str, known: list[str], told: Mapping[str, str], given: Mapping[str, object]) -> str:
    helps = []
    for one in given:
        if one in known:
            continue
        close = difflib.get_close_matches(one, known, n=1)
        if one in told:
            helps.append(f"{name} has no {one}=: {told[one]}.")
        elif close:
            helps.append(f"{name} has no {one}=: did you mean {close[0]}=?")
        else:
            helps.append(f"{name} has no {one}=: it takes {', '.join(known)}.")
    return " ".join(helps)
