"""Writes what was found between its markers in a document."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.program import Report


def write(path: Path, report: Report, threads: Sequence[int]) -> None:
    """Replace what stands between `<!-- NAME -->` and `<!-- /NAME -->` by the report's tables.

    Raises:
        ValueError: the document has no such markers.
    """
    body = "\n\n".join([_origin(report, threads), *(table.markdown() for table in report.tables)])
    text = path.read_text(encoding="utf-8")
    path.write_text(put(text, report.program.name, body, page=path), encoding="utf-8")


def put(text: str, name: str, body: str, *, page: Path) -> str:
    """A text with `body` between its markers of this name.

    Raises:
        ValueError: it has no such markers.
    """
    place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not place.search(text):
        raise ValueError(
            f"{page} has no place for {name}: it needs the lines <!-- {name} --> and <!-- /{name} -->"
        )
    return place.sub(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)


def _origin(report: Report, threads: Sequence[int]) -> str:
    command = (
        f"python -m {report.program.module} --size {report.size} --threads {' '.join(map(str, threads))}"
    )
    return f"{datetime.date.today().isoformat()}; {'; '.join(report.machine)}. `{command}`"
