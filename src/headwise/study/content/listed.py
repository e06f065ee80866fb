"""What every activity of a guide has."""

from __future__ import annotations

import msgspec


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """What an author writes of each.

    Attributes:
        id: unique over the whole guide, and kept for ever: addresses and progress hang on it.
        minutes: how long it takes.
        needs: ids of activities that come before it.
        summary: one sentence for the list of all activities.
    """

    id: str
    title: str
    minutes: int = 0
    needs: list[str] = []
    summary: str = ""


class Listed(Titled, frozen=True, kw_only=True):
    """An activity, with its file within the guide's folder and the line it begins at."""

    file: str = ""
    line: int = 1

    def places(self) -> list[str]:
        """The ids of what it holds, in reading order: addresses are "activity/#place"."""
        return []
