"""What may be written into the log, checked before it is: by the server, and for each entry of an import."""

from __future__ import annotations

import re

from headwise.study.progress.errors import Refused

_ID = re.compile(r"[0-9A-Za-z_-]{8,64}")
_SLUG = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._-]{0,126}[0-9A-Za-z])?")
_HALF = re.compile("[\ud800-\udfff]")
LONGEST_DURATION = 24 * 60 * 60 * 1000


def check_id(value: object) -> str:
    """An id that a page made: 8 to 64 letters, digits, - and _.

    Raises:
        Refused: it is none.
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise Refused(f"id {value!r}: it has 8 to 64 letters, digits, - and _, made anew for each entry")
    return value


def check_slug(value: object, what: str) -> str:
    """The id of a guide, card, question or activity.

    Raises:
        Refused: it is none.
    """
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise Refused(f"{what} {value!r}: an id has 1 to 128 letters, digits, dots, - and _")
    return value


def check_whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number within bounds; True and 1.0 are none.

    Raises:
        Refused: it is none.
    """
    if type(value) is not int or not low <= value <= high:
        raise Refused(f"{what} {value!r}: a whole number from {low} to {high} is wanted")
    return value


def check_when(value: object, clock: int) -> int:
    """The instant at which something was done that is sent only now; None is now, and none lies after it.

    Raises:
        Refused: it is no instant.
    """
    return clock if value is None else min(check_whole(value, "when", 0, 2**53 - 1), clock)


def check_flag(value: object, what: str) -> bool:
    """true or false.

    Raises:
        Refused: it is neither.
    """
    if type(value) is not bool:
        raise Refused(f"{what} {value!r}: true or false is wanted")
    return value


def check_version(value: object) -> str:
    """The word "current", or the number of a frozen version.

    Raises:
        Refused: it is neither.
    """
    if value == "current" or (isinstance(value, str) and re.fullmatch("[1-9][0-9]{0,8}", value)):
        return str(value)
    raise Refused(f"version {value!r}: 'current' or the number of a frozen version is wanted")


def check_given(value: object) -> str | list[str]:
    """An answer: a text, or names of options.

    Raises:
        Refused: it is neither, or a text with half of a character in it: no file can hold that.
    """
    if isinstance(value, str) and len(value) <= 1000:
        return _whole_characters(value)
    if isinstance(value, list) and len(value) <= 100:
        names = [one for one in value if isinstance(one, str) and len(one) <= 64]
        if len(names) == len(value):
            return [_whole_characters(name) for name in names]
    if isinstance(value, str):
        raise Refused(f"The answer has {len(value):,} characters, and at most 1,000 can be kept: shorten it.")
    raise Refused("given: a text of 1000 characters or less, or a list of names of options, is wanted")


def _whole_characters(text: str) -> str:
    broken = _HALF.search(text)
    if broken is not None:
        raise Refused(
            f"given: half of a character ({broken[0]!a}) stands at place {broken.start() + 1}, as cutting "
            "an emoji in two leaves it: write it again"
        )
    return text
