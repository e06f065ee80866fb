"""Settings as plain JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

SettingsT = TypeVar("SettingsT")


def plain(settings: Any, *, without: str = "recipe") -> dict[str, Any]:
    """A dataclass of settings as dicts, numbers and texts; `without` the part that is written elsewhere."""
    return {name: value for name, value in asdict(settings).items() if name != without}


def from_plain(kind: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """The dataclass that `plain` made the values from. What they lack keeps its default.

    Raises:
        ValueError: an entry that the dataclass doesn't have, or a value that it refuses.
    """
    hints = get_type_hints(kind)
    known = {one.name for one in fields(kind) if one.init}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no setting {', '.join(unknown)}")
    made: dict[str, Any] = {}
    for name, value in values.items():
        hint = hints[name]
        if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, Mapping):
            made[name] = from_plain(hint, value)
        else:
            made[name] = tuple(value) if isinstance(value, list) else value
    return kind(**made)
