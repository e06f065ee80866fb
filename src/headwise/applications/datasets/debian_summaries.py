"""Descriptions of Debian's packages and the line that sums each up."""

from __future__ import annotations

from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.descriptions import BY_HAND, LICENCE, divided, read_descriptions
from headwise.applications.datasets.tables import write_table

VAL, TEST = 0.03, 0.05


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    rows, lists = read_descriptions(fresh=fresh, say=say)
    counts = {
        split: write_table(
            folder / f"{split}.jsonl",
            (
                {"text": row.text, "summary": row.synopsis, "group": row.source, "package": row.package}
                for row in some
            ),
        )
        for split, some in divided(rows, val=VAL, test=TEST).items()
    }
    return Made(counts, (lists,))


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
