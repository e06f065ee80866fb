"""Names of the library's: whether they exist, and a piece of their source."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import headwise

MOST = 64
"""Lines of source that are shown at most."""
GAP = "    ...\n\n"
_SHOWN_METHODS = ("forward", "__call__", "allow", "__init__")


@dataclass(frozen=True)
class Symbol:
    """A name of the library's.

    Attributes:
        summary: the first sentence of its description.
        source: as much of its source as is shown; whole where `cut` is 0.
        file, line: where it stands, from the library's folder.
        cut: lines that are left out.
    """

    name: str
    summary: str
    signature: str
    source: str
    file: str
    line: int
    cut: int


@lru_cache(maxsize=512)
def find(name: str) -> object:
    """The object of this dotted name.

    Raises:
        LookupError: there is none in the library.
    """
    parts = name.split(".")
    if parts[0] != "headwise":
        raise LookupError(f"{name} is no name of the library: it begins with headwise.")
    found: object = headwise
    for index, part in enumerate(parts[1:], start=1):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(parts[: index + 1]))
            except ImportError:
                raise LookupError(f"the library has no {'.'.join(parts[: index + 1])}") from None
    return found


@lru_cache(maxsize=512)
def symbol(name: str) -> Symbol:
    """What is shown of a name.

    Raises:
        LookupError: there is none, or it has no source in the library.
    """
    found = find(name)
    if callable(found):
        found = inspect.unwrap(found)
    try:
        lines, line = inspect.getsourcelines(found)  # type: ignore[arg-type]
        path = Path(inspect.getsourcefile(found) or "")  # type: ignore[arg-type]
    except (TypeError, OSError):
        raise LookupError(f"{name} has no source to show: name a function, a class or a module") from None
    home = Path(headwise.__file__).resolve().parent.parent
    try:
        file = path.resolve().relative_to(home).as_posix()
    except ValueError:
        raise LookupError(f"{name} stands outside of the library, in {path.name}") from None
    shown = _shown(found, lines)
    return Symbol(
        name=name,
        summary=_summary(found),
        signature=_signature(name, found),
        source="".join(shown).rstrip() + "\n",
        file=file,
        line=max(line, 1),
        cut=len(lines) - len(shown) + shown.count(GAP),
    )


def _shown(found: object, lines: list[str]) -> list[str]:
    """All of a short source; of a long class its head and the method that does the work; else its start."""
    if len(lines) <= MOST:
        return lines
    if inspect.isclass(found):
        for name in _SHOWN_METHODS:
            body = _source(vars(found).get(name))
            if body:
                head = lines[: _head(lines)]
                return [*head, GAP, *body[: MOST - len(head)]]
    return lines[:MOST]


def _source(method: object) -> list[str]:
    """The lines of a method; none where it isn't written down, as those that dataclasses make."""
    try:
        return inspect.getsourcelines(method)[0] if inspect.isfunction(method) else []
    except OSError:
        return []


def _head(lines: list[str]) -> int:
    """How many lines a class's first line and the first paragraph of its description take."""
    for number, line in enumerate(lines[:MOST]):
        if number and not line.strip():
            return number + 1
    return 1


def _summary(found: object) -> str:
    text = (inspect.getdoc(found) or "").split("\n\n")[0]
    return " ".join(text.split())


def _signature(name: str, found: object) -> str:
    short = name.removeprefix("headwise.")
    if not callable(found):
        return short
    try:
        given = inspect.signature(found)
    except (TypeError, ValueError):
        return short
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()]
    if bare and bare[0].name == "self":
        bare = bare[1:]
    return f"{short}{inspect.Signature(bare)}"
