"""What to read beside the guide."""

from __future__ import annotations

from typing import Literal

import msgspec


class Resource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to read, run or watch. `when` is the id of the activity after which it helps."""

    id: str
    title: str
    url: str
    kind: Literal["paper", "code", "reading", "course"]
    why: str
    when: str = ""
    authors: str = ""
    year: int | None = None
    line: int = 0


class Resources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of resources."""

    id: str
    title: str
    resources: list[Resource]
    minutes: int = 0
    needs: list[str] = []
    summary: str = ""
    file: str = ""
    line: int = 1
    type: Literal["resources"] = "resources"
