"""Cloze questions on Debian's descriptions: the synopsis with one word masked, the answer in the long text.

The construction of Hermann et al. 2015, which made the CNN and Daily Mail questions from summaries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.descriptions import (
    BY_HAND,
    LICENCE,
    Described,
    make_tables,
)
from headwise.applications.questions import FUNCTION_WORDS, WORD, masked

VAL, TEST = 0.05, 0.10
LETTERS = 4
"""Of an answer at least, unless it has a figure in it."""
KINDS = frozenset(
    """
    library libraries file files development documentation header headers debug debugging symbols
    package packages tool tools module modules examples data runtime shared static version python perl
    plugin binding bindings program support dummy transitional metapackage common
    """.split()  # noqa: SIM905 - a hundred quotes would hide them
)
"""Words that say which kind of package it is: they could be guessed without reading the text."""


def cloze(row: Described) -> dict[str, str] | None:
    """A question of this description, or None where no word of the synopsis stands in the text.

    Which of its words is masked depends on the package's name alone. It is masked wherever it stands.
    """
    there: dict[str, str] = {}
    for match in WORD.finditer(row.text):
        there.setdefault(match[0].lower(), match[0])
    words = [
        word
        for word in dict.fromkeys(match[0].lower() for match in WORD.finditer(row.synopsis))
        if word in there and _content(word)
    ]
    if not words:
        return None
    place = int.from_bytes(hashlib.sha256(row.package.encode()).digest()[:8], "big")
    word = words[place % len(words)]
    return {
        "context": row.text,
        "question": masked(row.synopsis, word),
        "answer": there[word],
        "group": row.source,
        "package": row.package,
    }


def _content(word: str) -> bool:
    return (
        word not in FUNCTION_WORDS
        and word not in KINDS
        and (len(word) >= LETTERS or any(sign.isdigit() for sign in word))
    )


def _clozes(rows: Sequence[Described]) -> Iterator[dict[str, str]]:
    for row in rows:
        question = cloze(row)
        if question is not None:
            yield question


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    return make_tables(folder, _clozes, val=VAL, test=TEST, fresh=fresh, say=say)


DATASET = Dataset(
    name="debian-cloze",
    application="question-answering",
    about="synopses of Debian's packages with a word masked, asked of the descriptions",
    counts={"train": 43_240, "val": 2_332, "test": 4_980},
    licence=LICENCE,
    download="16 MB",
    client="apt-get",
    by_hand=BY_HAND,
    make=make,
)
