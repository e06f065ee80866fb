"""Visuals: pictures of computed numbers, which a learner can change."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headwise.study.content.listed import Listed


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a learner can set. `min`, `max`, `step` are those of a range, `options` of a select
    (texts, or tables with value and label)."""

    name: str
    label: str
    kind: Literal["range", "select", "text", "toggle"]
    min: float | None = None
    max: float | None = None
    step: float | None = None
    value: bool | int | float | str | None = None
    options: list[Any] = []
    unit: str = ""
    help: str = ""
    line: int = 0


class Visual(Listed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A visual.

    Attributes:
        data: the module of headwise.study.visuals that computes what it shows.
        module: the script that draws it, static/visuals/NAME.js.
        words: what it shows, for somebody who doesn't see it.
        sources, reason: the places it rests on; why there are none, where there are none.
    """

    data: str
    module: str
    words: str
    sources: list[str] = msgspec.field(default_factory=list)
    reason: str = ""
    inputs: list[Input] = msgspec.field(default_factory=list)
    type: Literal["visual"] = "visual"
