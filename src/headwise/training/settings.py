"""`--set key=value`: changes to a dataclass of settings, with types checked and typing mistakes named."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

SettingsT = TypeVar("SettingsT")


class SettingError(ValueError):
    """A setting that can't be taken. The message names it, the rule and the nearest right one."""


def with_settings(settings: SettingsT, changes: Iterable[str]) -> SettingsT:
    """A copy of a dataclass with `key=value` changes; of two for one setting the later one wins.

    All are made before the dataclass checks its values, so the order of what fits only together (fewer
    steps, a shorter warmup) doesn't matter.

    A key is the name of a field, "warmup"; a field of a dataclass inside has its path, "model.d_model", or
    its name alone where only one field is called so. Values are read by the field's type: whole numbers
    (4000, 4_000), numbers (3e-4), true/false, text, "none" where None is allowed, lists with commas.

    Raises:
        SettingError: no "=", an unknown or ambiguous key, a value of another type, or whatever the
            dataclass itself refuses.
    """
    if not is_dataclass(settings) or isinstance(settings, type):
        raise TypeError(f"settings are a {type(settings).__name__}: with_settings changes dataclasses")
    made: dict[tuple[str, ...], _Change] = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key:
            raise SettingError(f"{change!r} is no setting: write key=value, such as warmup=4000")
        path = tuple(_find(settings, key))
        made.pop(path, None)
        made[path] = _Change(f"{key}={text}", parse(_type_at(settings, path), text, key))
    error = _refusal(settings, made)
    if error is None:
        return _changed(settings, made)
    guilty = _needed(settings, made)
    if not guilty:  # several mistakes at once: a few changes that are one by themselves
        guilty = _least(settings, made)
        error = _refusal(settings, guilty)
    raise SettingError(f"{', '.join(change.said for change in guilty.values())}: {error}")


def setting_names(settings: Any, prefix: str = "") -> Iterator[str]:
    """The paths of all fields, those of dataclasses inside with theirs before a dot."""
    for field in fields(settings):
        if not field.init:
            continue
        value = getattr(settings, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from setting_names(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that isn't known: the nearest one, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not close:  # "model.d_model" is near "dmodel" by its last part
        last = {one.rpartition(".")[2]: one for one in names}
        close = [last[found] for found in difflib.get_close_matches(name, last, n=1, cutoff=0.6)]
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"


def _find(settings: Any, key: str) -> list[str]:
    names = list(setting_names(settings))
    if key in names:
        return key.split(".")
    same = [name for name in names if name.rpartition(".")[2] == key]
    if len(same) == 1:
        return same[0].split(".")
    if same:
        raise SettingError(f"setting {key!r} is in several places: write {' or '.join(same)}")
    raise SettingError(f"there is no setting {key!r}: {nearest(key, names)}")


class _Change(NamedTuple):
    said: str
    value: Any


def _type_at(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        settings = getattr(settings, name)
    return get_type_hints(type(settings))[path[-1]]


_Changes = Mapping[tuple[str, ...], _Change]


def _changed(settings: SettingsT, made: _Changes) -> SettingsT:
    """The dataclass with all changes, which are given by their paths in it."""
    new: dict[str, Any] = {}
    for name in dict.fromkeys(path[0] for path in made):
        if (name,) in made:
            new[name] = made[name,].value
        else:
            inside = {path[1:]: change for path, change in made.items() if path[0] == name}
            new[name] = _changed(getattr(settings, name), inside)
    return replace(settings, **new)  # type: ignore[type-var]


def _refusal(settings: Any, made: _Changes) -> Exception | None:
    try:
        _changed(settings, made)
    except (ValueError, TypeError) as error:
        return error
    return None


def _needed(settings: Any, made: _Changes) -> _Changes:
    """Those without any one of which the others could be made."""
    return {path: made[path] for path in made if _refusal(settings, _without(made, path)) is None}


def _least(settings: Any, made: _Changes) -> _Changes:
    """As few as are still refused."""
    for path in tuple(made):
        others = _without(made, path)
        if _refusal(settings, others) is not None:
            made = others
    return made


def _without(made: _Changes, path: tuple[str, ...]) -> _Changes:
    return {one: change for one, change in made.items() if one != path}


def parse(kind: Any, text: str, key: str) -> Any:
    """Read a value of a type.

    Raises:
        SettingError: the text is no such value.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if type(None) in args and text.lower() in ("none", "null"):
            return None
        kinds = [arg for arg in args if arg is not type(None)]
        for one in kinds:
            try:
                return parse(one, text, key)
            except SettingError as error:
                if one is kinds[-1]:
                    hint = ", or none" if type(None) in args else ""
                    raise SettingError(f"{error}{hint}") from None
    if origin is Literal:
        for choice in args:
            if text == str(choice):
                return choice
        raise SettingError(f"{key}={text}: choose one of {', '.join(map(str, args))}")
    if origin in (tuple, list):
        inner = args[0] if args else str
        return origin(parse(inner, item.strip(), key) for item in text.split(",") if item.strip())
    if kind is bool:
        words = {"true": True, "yes": True, "on": True, "1": True}
        words |= {"false": False, "no": False, "off": False, "0": False}
        if text.lower() not in words:
            raise SettingError(f"{key}={text}: it must be true or false")
        return words[text.lower()]
    if kind is int or kind is float:
        try:
            return kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise SettingError(f"{key}={text}: it must be {what}") from None
    if kind is str:
        return text
    raise SettingError(f"{key} is a {kind}: it can't be set from text")
