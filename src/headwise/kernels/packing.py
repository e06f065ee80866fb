"""Masks and biases as a string and some tensors: the form in which a compiled graph can hold them.

A node is a JSON object {"class": name, field: value, ...}; a tensor stands as {"tensor": its number}.
The string is written by hand, since `torch.compile` follows this code and doesn't follow `json.dumps`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from functools import lru_cache
from typing import Any

from torch import Tensor

from headwise.masks.base import Mask
from headwise.positions.base import Bias


def pack(part: Any, tensors: list[Tensor]) -> str:
    """JSON of a mask, a bias or a field of one; appends the tensors that it meets."""
    if part is None:
        return "null"
    if isinstance(part, Tensor):
        tensors.append(part)
        return '{"tensor": ' + str(len(tensors) - 1) + "}"
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, str):
        return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(part, float) and not math.isfinite(part):
        return "NaN" if math.isnan(part) else "Infinity" if part > 0 else "-Infinity"
    if isinstance(part, tuple | list):
        return "[" + ", ".join([pack(each, tensors) for each in part]) + "]"
    if isinstance(part, Mask | Bias):
        text = '{"class": "' + _name(type(part)) + '"'
        for field in dataclasses.fields(part):
            if field.init:
                text += ', "' + field.name + '": ' + pack(getattr(part, field.name), tensors)
        return text + "}"
    return str(part)


def unpack(text: str, tensors: list[Tensor]) -> Any:
    """The mask or bias (or None) that `pack` wrote."""
    return _build(_parse(text), tensors)


@lru_cache(maxsize=256)
def _parse(text: str) -> Any:
    return json.loads(text, strict=False)  # as they are: newlines in strings


def _build(node: Any, tensors: list[Tensor]) -> Any:
    if isinstance(node, list):
        return tuple(_build(each, tensors) for each in node)
    if not isinstance(node, dict):
        return node
    if "class" not in node:
        return tensors[node["tensor"]]
    kind = _classes()[node["class"]]
    return kind(**{name: _build(value, tensors) for name, value in node.items() if name != "class"})


def _name(kind: type) -> str:
    return kind.__module__ + ":" + kind.__qualname__


def _classes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting: list[Any] = [Mask, Bias]
    while waiting:
        kind = waiting.pop()
        found[_name(kind)] = kind
        waiting.extend(kind.__subclasses__())
    return found
