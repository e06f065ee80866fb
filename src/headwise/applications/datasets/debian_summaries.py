"""Descriptions of Debian's packages and the line that sums each up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.descriptions import BY_HAND, LICENCE, Described, make_tables

VAL, TEST = 0.03, 0.05


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    return make_tables(folder, _pairs, val=VAL, test=TEST, fresh=fresh, say=say)


def _pairs(rows: Sequence[Described]) -> Iterator[dict[str, str]]:
    for row in rows:
        yield {"text": row.text, "summary": row.synopsis, "group": row.source, "package": row.package}


DATASET = Dataset(
    name="debian-summaries",
    application="summarization",
    about="descriptions of Debian's packages and their synopses, split by source package",
    counts={"train": 49_585, "val": 1_706, "test": 2_543},
    licence=LICENCE,
    download="16 MB",
    client="apt-get",
    by_hand=BY_HAND,
    make=make,
)
