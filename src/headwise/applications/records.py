"""Tables of texts: tab-separated with a line of names, or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from headwise.applications.errors import DataError
from headwise.applications.text_files import ALIASES, read_lines, split_of

SUFFIXES = (".tsv", ".jsonl", ".tsv.gz", ".jsonl.gz")
Record = dict[str, str]


def read_records(path: Path, needed: Sequence[str]) -> list[Record]:
    """The rows of a .tsv or .jsonl file (or with .gz), as texts by column.

    Raises:
        DataError: another kind of file, a column that is missing, a row that can't be read, by its line.
    """
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind not in ("tsv", "jsonl"):
        raise DataError(f"{path}: tables end in {', '.join(SUFFIXES)}")
    lines = read_lines(path, blanks=" \r")
    if kind == "tsv":
        names, *lines = lines
        columns = names.split("\t")
        _check(columns, needed, f"{path}, line 1", "begin with a line of column names, such as")
    found: list[Record] = []
    for number, line in enumerate(lines, 2 if kind == "tsv" else 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        if kind == "tsv":
            cells = line.split("\t")
            if len(cells) != len(columns):
                raise DataError(f"{place} has {len(cells)} columns, and the first line names {len(columns)}")
            row = dict(zip(columns, cells, strict=True))
        else:
            row = _parse(line, place, needed)
        empty = [name for name in needed if not row[name].strip()]
        if empty:
            raise DataError(f"{place}: {empty[0]} is empty")
        found.append({name: cell.strip() for name, cell in row.items()})
    if not found:
        raise DataError(f"{path} has no rows")
    return found


def _parse(line: str, place: str, needed: Sequence[str]) -> Record:
    try:
        row = json.loads(line)
    except ValueError:
        raise DataError(f"{place} is no JSON: each line must be one object") from None
    if not isinstance(row, dict):
        raise DataError(f"{place} is no JSON object")
    _check(list(row), needed, place, "be an object with")
    wrong = [name for name in needed if not isinstance(row[name], str)]
    if wrong:
        raise DataError(f"{place}: {wrong[0]} must be a text, and is {json.dumps(row[wrong[0]])[:60]}")
    return {name: value for name, value in row.items() if isinstance(value, str)}


def _check(columns: Sequence[str], needed: Sequence[str], place: str, must: str) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(f"{place} has no {missing[0]}: it must {must} {', '.join(needed)}")


def load_records(paths: Sequence[Path], split: str, needed: Sequence[str], *, group: str) -> list[Record]:
    """A split: of a folder, the file of its name (train.tsv, val.jsonl.gz, ...); of one file, the rows whose
    `group` column (else the first needed one) falls into it by its SHA-256, so that rows of one group are
    never in two splits.

    Raises:
        DataError: it isn't there, or can't be read.
    """
    if len(paths) != 1:
        raise DataError(f"{len(paths)} paths of data: give one folder or one file")
    path = paths[0]
    if path.is_dir():
        names = [f"{alias}{suffix}" for alias in ALIASES.get(split, (split,)) for suffix in SUFFIXES]
        there = [path / name for name in names if (path / name).is_file()]
        if not there:
            raise DataError(f"{path} has no {split} set: it needs {split}.tsv or {split}.jsonl, or with .gz")
        if len(there) > 1:
            raise DataError(f"{path} has {there[0].name} and {there[1].name}: keep one")
        return read_records(there[0], needed)
    if split not in ALIASES:
        raise DataError(f"one file has the splits {', '.join(ALIASES)}, not {split!r}")
    rows = read_records(path, needed)
    chosen = [row for row in rows if split_of(row.get(group) or row[needed[0]]) == split]
    if not chosen:
        raise DataError(f"{path} has {len(rows)} rows, too few to set any apart for {split}: give more")
    return chosen
