"""What to read beside the guide."""

from __future__ import annotations

from typing import Literal

import msgspec

from headwise.study.content.listed import Listed


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


class Resources(Listed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of resources."""

    resources: list[Resource]
    type: Literal["resources"] = "resources"

    def places(self) -> list[str]:
        return [one.id for one in self.resources]
