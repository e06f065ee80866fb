"""A text that is longer than the model: what is read, and which token is read where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.cli.errors import UserError

MOST = 2**16 - 1
"""Tokens of a reading, special ones included: the report names them by two bytes."""


@dataclass(frozen=True)
class Window:
    """One pass of the model.

    Attributes:
        places: for each position of this pass, the token of the reading that stands there.
        rows: the positions whose attention is taken from this pass; over all windows every token of the
            reading comes up exactly once.
    """

    places: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """The tokens that are looked at, special ones included, and the passes that cover them."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    windows: tuple[Window, ...]
    whole: int  # tokens of the whole text, special ones included

    @property
    def cut(self) -> bool:
        """Is the end of the text left out?"""
        return len(self.ids) < self.whole


def read(ids: Sequence[int], tokens: Sequence[str], *, limit: int, stride: int | None) -> Reading:
    """Lay windows over a tokenised text.

    Args:
        ids, tokens: the whole text, with one special token ahead ([CLS]) and one behind ([SEP]).
        limit: tokens that the model takes at once, special ones included.
        stride: tokens from the start of one window to the next; None: the first window alone.

    Raises:
        UserError: no tokens but special ones; a stride that skips tokens, or stands still.
    """
    ahead = behind = 1
    if len(ids) <= ahead + behind:
        raise UserError("the text holds no token that the model knows: give at least one word")
    marks = (tokens[0], tokens[-1])
    special = [token in marks for token in tokens]  # also where somebody wrote [SEP] into the text
    room = limit - ahead - behind
    if stride is not None and not 1 <= stride <= room:
        raise UserError(
            f"--stride {stride} must lie in 1 .. {room}: a window holds {room} tokens of the text, and a "
            "longer step would skip some"
        )
    whole = len(ids)
    if stride is not None and whole > MOST:
        raise UserError(f"the text has {whole} tokens, and at most {MOST} can be shown: give a shorter part")
    content = whole - ahead - behind
    if content > room and stride is None:
        keep = [*range(ahead + room), *range(whole - behind, whole)]
        ids, tokens, special = [ids[i] for i in keep], [tokens[i] for i in keep], [special[i] for i in keep]
        content = room
    starts = _starts(content, room, stride or room)
    owner = [_owner(place, starts, room, content) for place in range(content)]
    windows = []
    for number, start in enumerate(starts):
        inside = range(start, min(start + room, content))
        places = (
            *range(ahead),
            *(ahead + place for place in inside),
            *range(ahead + content, ahead + content + behind),
        )
        rows = [ahead + place - start for place in inside if owner[place] == number]
        if number == 0:
            rows = [*range(ahead), *rows]
        if number == len(starts) - 1:
            rows = [*rows, *range(len(places) - behind, len(places))]
        windows.append(Window(places, tuple(rows)))
    return Reading(tuple(ids), tuple(tokens), tuple(special), tuple(windows), whole)


def _starts(content: int, room: int, stride: int) -> list[int]:
    if content <= room:
        return [0]
    return [*range(0, content - room, stride), content - room]  # the last window ends with the text


def _owner(place: int, starts: Sequence[int], room: int, content: int) -> int:
    """The window in which this token has most neighbours on its scarcer side. The text's own ends are
    no cut."""

    def margin(start: int) -> float:
        end = min(start + room, content)
        if not start <= place < end:
            return -1.0
        left = place - start if start > 0 else float("inf")
        right = end - 1 - place if end < content else float("inf")
        return min(left, right)

    return max(range(len(starts)), key=lambda number: margin(starts[number]))
