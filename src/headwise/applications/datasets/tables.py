"""Tables of texts as the applications read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_table(file: Path, rows: Iterable[Mapping[str, str]]) -> int:
    """JSON lines; returns how many."""
    count = 0
    with file.open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(dict(row), ensure_ascii=False) + "\n")
            count += 1
    return count
