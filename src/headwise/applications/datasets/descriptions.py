"""Debian's package descriptions: long texts, each with a line that says the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Made
from headwise.applications.datasets.debian import Debian
from headwise.applications.datasets.tables import write_table

WORDS = 20
"""Of a description at least; shorter ones say no more than their synopsis."""
SYNOPSIS_WORDS = 3
LICENCE = (
    "each description belongs to its package, and usually stands under the package's own free licence "
    "(https://packages.debian.org); to learn from, not to hand on as a whole"
)
BY_HAND = (
    "without apt-get, take main/i18n/Translation-en.xz and main/binary-amd64/Packages.xz of a Debian mirror, "
    "such as https://deb.debian.org/debian/dists/bookworm"
)


@dataclass(frozen=True)
class Described:
    """A package's description.

    Attributes:
        source: the source package; packages of one source share sentences
    """

    package: str
    source: str
    text: str
    synopsis: str


def read_descriptions(*, fresh: bool, say: Say) -> tuple[list[Described], str]:
    """All descriptions of Debian's main section that are long enough, each text once, by package name; and
    what the lists are called.

    Raises:
        DataError: no client, no network.
    """
    packages, translations = Debian(fresh=fresh, say=say).lists()
    rows = parse(packages, translations)
    return rows, f"{translations.name}, {packages.name}"


def parse(packages: Path, translations: Path) -> list[Described]:
    """See `read_descriptions`."""
    sources = dict(_sources(packages))
    seen: set[str] = set()
    found = []
    for package, synopsis, text in sorted(_texts(translations)):
        enough = len(text.split()) >= WORDS and len(synopsis.split()) >= SYNOPSIS_WORDS
        if enough and text not in seen:
            seen.add(text)
            found.append(Described(package, sources.get(package, package), text, synopsis))
    return found


def _stanzas(path: Path) -> Iterator[str]:
    return iter(path.read_text(encoding="utf-8").split("\n\n"))


def _sources(path: Path) -> Iterator[tuple[str, str]]:
    """Binary package and its source package; the same one where none is named."""
    for stanza in _stanzas(path):
        package = re.search(r"^Package: (\S+)", stanza, re.M)
        source = re.search(r"^Source: (\S+)", stanza, re.M)
        if package and source:
            yield package[1], source[1]


def _texts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Package, synopsis, description; lines that hold a point alone are paragraphs' ends."""
    form = re.compile(r"^Package: (\S+)\n(?:.*\n)*?Description-en: (.*)\n((?: .*(?:\n|$))*)", re.M)
    for stanza in _stanzas(path):
        match = form.search(stanza)
        if match:
            lines = [line.strip() for line in match[3].splitlines()]
            text = " ".join(" ".join(line for line in lines if line != ".").split())
            yield match[1], " ".join(match[2].split()), text


def make_tables(
    folder: Path,
    rows_of: Callable[[Sequence[Described]], Iterable[Mapping[str, str]]],
    *,
    val: float,
    test: float,
    fresh: bool,
    say: Say,
) -> Made:
    """A table for each split, of what `rows_of` makes of its descriptions; see `base.Make`."""
    rows, lists = read_descriptions(fresh=fresh, say=say)
    counts = {
        split: write_table(folder / f"{split}.jsonl", rows_of(some))
        for split, some in divided(rows, val=val, test=test).items()
    }
    return Made(counts, (lists,))


def split_of_source(source: str, *, val: float, test: float) -> str:
    """The split of a source package, by its SHA-256."""
    place = int.from_bytes(hashlib.sha256(source.encode()).digest()[:8], "big") / 2**64
    return "test" if place < test else "val" if place < test + val else "train"


def divided(rows: Sequence[Described], *, val: float, test: float) -> dict[str, list[Described]]:
    """By source package. Rows of val and test whose synopsis is in train are left out."""
    found: dict[str, list[Described]] = {"train": [], "val": [], "test": []}
    for row in rows:
        found[split_of_source(row.source, val=val, test=test)].append(row)
    known = {row.synopsis.lower() for row in found["train"]}
    for split in ("val", "test"):
        found[split] = [row for row in found[split] if row.synopsis.lower() not in known]
    return found
