"""TOML files read into structs; what is wrong is told with file and line."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from headwise.study.content.sources import canonical
from headwise.study.content.toml_lines import Path, TomlLines
from headwise.study.errors import GuideError

T = TypeVar("T")

_AT_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)")
_AT_PATH = re.compile(r" - at `(\$[^`]*)`$")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")


def _not_finite(data: object, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """Every nan and inf, and where it stands."""
    if isinstance(data, float) and not math.isfinite(data):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _not_finite(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _not_finite(value, (*path, index))


class TomlFile:
    """A TOML text, and where everything stands in it.

    Args:
        name: of the file, for errors.
        first: the line of the file that the text begins at.

    Raises:
        GuideError: it isn't TOML.
    """

    def __init__(self, text: str, name: str, *, first: int = 1) -> None:
        self.name = name
        self._written = text.splitlines()
        self._first = first
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = _AT_LINE.search(str(error))
            line = int(found[1]) + first - 1 if found else text.count("\n") + first
            raise GuideError(f"this is not TOML: {_AT_LINE.sub('', str(error))}", name, line) from None
        self.lines = TomlLines(text, first=first)

    def error(self, message: str, *path: str | int) -> GuideError:
        """An error at the line of this path."""
        return GuideError(message, self.name, self.lines[path])

    def item_error(self, message: str, item: str, *path: str | int) -> GuideError:
        """An error at the line where this text stands in the list at this path."""
        line = self.lines[path]
        for number in range(line, self._first + len(self._written)):
            if f'"{item}"' in self._written[number - self._first]:
                return GuideError(message, self.name, number)
        return GuideError(message, self.name, line)

    def convert(self, data: object, kind: type[T], path: Path = ()) -> T:
        """`data`, which stands at `path`, as a struct.

        Raises:
            GuideError: a field is missing, unknown, of another type, or holds nan or inf.
        """
        for rest, value in _not_finite(data):
            raise self.error(
                f"{value} is no number that a guide can show or grade: give a finite one", *path, *rest
            )
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            message, rest = told(error)
            raise GuideError(message, self.name, self.lines[(*path, *rest)]) from None

    def convert_with_items(
        self, kind: type[T], items: str, item_kind: type[Any], errors: list[GuideError], **more: object
    ) -> T | None:
        """The whole file as a struct that holds a list of others in its field `items`; each of those gets the
        line it begins at. Every fault goes into `errors`; None if the file itself has one."""
        listed = self.data.get(items, [])
        made = []
        if not isinstance(listed, list):
            errors.append(self.error(f"{items} is a list of tables, written [[{items}]]", items))
            return None
        for index, item in enumerate(listed):
            path = (items, index)
            if isinstance(item, dict):
                item = plain_sources(item) | {"line": self.lines[path]}
            try:
                made.append(self.convert(item, item_kind, path))
            except GuideError as error:
                errors.append(error)
        try:
            whole = self.convert(plain_sources(self.data) | {items: []} | more, kind)
        except GuideError as error:
            errors.append(error)
            return None
        replaced: T = msgspec.structs.replace(whole, **{items: made})  # type: ignore[type-var]
        return replaced


def plain_sources(data: Mapping[str, Any]) -> dict[str, Any]:
    """A table with its sources by their one id, whatever converter's suffix they were written with."""
    listed = data.get("sources")
    if not isinstance(listed, list):
        return dict(data)
    return {**data, "sources": [canonical(one) if isinstance(one, str) else one for one in listed]}


def told(error: msgspec.ValidationError) -> tuple[str, Path]:
    """What is wrong, in a guide author's words, and the path to it."""
    text = str(error)
    path: Path = ()
    if found := _AT_PATH.search(text):
        text = text[: found.start()]
        path = tuple(name or int(index) for name, index in _STEP.findall(found[1]))
    text = text.replace("Object missing required field", "the table lacks the field")
    text = text.replace("Object contains unknown field", "there is no field")
    text = text.replace("Invalid enum value", "the value can't be")
    where = ".".join(str(step) for step in path if isinstance(step, str))
    return (f"{where}: {text}" if where else text), path
