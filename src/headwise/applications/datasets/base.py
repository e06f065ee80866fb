"""A dataset by name: what it is, how it is made, and whether what was made is what is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from headwise.applications.base import Say
from headwise.applications.errors import DataError

DRIFT = 0.02
"""Share of a count by which newer packages may differ before the data is refused as something else..."""
SLACK = 25
"""...or the number of examples, if that is more."""


@dataclass(frozen=True)
class Made:
    """What a dataset's program wrote.

    Attributes:
        counts: examples of each split, or of the whole
        packages: the files that it came from, as the package client named them
    """

    counts: Mapping[str, int]
    packages: tuple[str, ...]


class Make(Protocol):
    """A dataset's program: fetch the packages, write the data into an empty folder."""

    def __call__(self, folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made: ...


@dataclass(frozen=True)
class Dataset:
    """A dataset that comes from ordinary packages.

    Attributes:
        name: as in `headwise data NAME`
        application: what is trained on it
        about: one line
        counts: what is expected, by split
        licence: whose it is, and on which terms
        download: size of what is fetched
        client: the programs that fetch it
        by_hand: where it may be fetched without them
        make: writes it
        language: of the other side, where it can be chosen; `counts` are those of this one
        settings: `--set` that training on it needs
    """

    name: str
    application: str
    about: str
    counts: Mapping[str, int]
    licence: str
    download: str
    client: str
    by_hand: str
    make: Make
    language: str | None = None
    settings: Callable[[str | None], tuple[str, ...]] = field(default=lambda language: ())

    def check(self, found: Mapping[str, int], *, accept: bool, say: Say) -> None:
        """Say what was found beside what is expected.

        Args:
            accept: take what is far off, rather than refuse it

        Raises:
            DataError: counts that are far off, or 0.
        """
        for split, expected in self.counts.items():
            count = found.get(split, 0)
            told = f"{split}: {count:,} found, {expected:,} expected"
            if not count:
                raise DataError(f"{self.name}, {told}: the packages don't hold what they did")
            if abs(count - expected) <= max(DRIFT * expected, SLACK):
                say(told if count == expected else f"{told}: newer packages differ a little")
            elif accept:
                say(f"{told}: taken as it is")
            else:
                raise DataError(
                    f"{self.name}, {told}: the packages hold something else than they did (another release "
                    "of Debian?); --accept takes it as it is"
                )
