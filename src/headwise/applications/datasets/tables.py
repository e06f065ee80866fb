"""Tables of texts as the applications read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_table(file: Path, rows: Iterable[Mapping[str, str]]) -> int:
    """JSON lines; returns how many."""
    lines = [json.dumps(dict(row), ensure_ascii=False) for row in rows]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
