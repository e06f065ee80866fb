"""What shows that published versions are those that were published: each manifest holds the hash of the one
before, and newest.sha256 that of the newest, as `sha256sum -c` reads it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headwise.study.errors import GuideError

NEWEST = "newest.sha256"
_WRITTEN = re.compile(r"(?P<hash>[0-9a-f]{64}) [ *](?P<number>[1-9]\d*)\.json\n?")


def written(number: int, manifest: bytes) -> bytes:
    """The content of newest.sha256 after a version was published."""
    return f"{hashlib.sha256(manifest).hexdigest()}  {number}.json\n".encode()


def hash_of(manifest: Path) -> str:
    """The SHA-256 of a manifest; "" if there is none."""
    try:
        return hashlib.sha256(manifest.read_bytes()).hexdigest()
    except OSError:
        return ""


def broken(home: Path, numbers: Sequence[int], previous: Mapping[int, str]) -> list[GuideError]:
    """Manifests that aren't those for which the next one, or newest.sha256, was written.

    Args:
        home: the folder of the manifests.
        numbers: of all that lie there, in order.
        previous: what each of those that can be read holds as the hash of the one before.
    """
    errors = [
        GuideError(
            f"version {number} wasn't published after this {number - 1}.json: one of the two was altered, "
            f"and a version stays as it was; bring back both files"
            if number > 1
            else "this was altered: nothing lies before version 1; bring the file back",
            str(home / f"{number}.json"),
            1,
        )
        for number, before in previous.items()
        if before != hash_of(home / f"{number - 1}.json")
    ]
    return errors + _newest(home, numbers[-1] if numbers else 0)


def _newest(home: Path, newest: int) -> list[GuideError]:
    path = home / NEWEST
    try:
        found = _WRITTEN.fullmatch(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not newest:
            return []
        found = None
    except (OSError, ValueError) as error:
        return [GuideError(f"this can't be read: {error}", str(path))]
    number = int(found["number"]) if found else 0
    if number > newest:
        return [
            GuideError(
                f"version {number} was published and is missing: a version is never altered nor taken away; "
                f"bring {number}.json back",
                str(path),
            )
        ]
    if found is None or number < newest:
        return [
            GuideError(
                f"the newest version published to its end is {number or 'none'}, but there is {newest}.json: "
                f"if that one is yours, run sha256sum {newest}.json > {NEWEST} here; else take it away",
                str(path),
            )
        ]
    if found["hash"] != hash_of(home / f"{newest}.json"):
        message = f"{newest}.json was altered: a version stays as it was; bring the file back"
        return [GuideError(message, str(home / f"{newest}.json"), 1)]
    return []
