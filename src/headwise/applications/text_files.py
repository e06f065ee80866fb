"""Plain text, one sentence a line: read with every mistake named."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.applications.errors import DataError
from headwise.training.runs import read_config

# What a split's files may be called, besides its own name
ALIASES = {"train": ("train",), "val": ("val", "valid", "validation", "dev"), "test": ("test",)}
SHARE = 0.03
"""Of all pairs, for validation and for testing each, where files come without splits."""


@dataclass(frozen=True)
class Pairs:
    """Texts and what each is to become."""

    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)

    def digest(self) -> str:
        """Tells other texts apart: the SHA-256 of all of them in order."""
        found = hashlib.sha256()
        for texts in (self.sources, self.targets):
            found.update("\n".join(texts).encode())
            found.update(b"\0")
        return found.hexdigest()


def read_lines(path: Path, *, blanks: str | None = None) -> list[str]:
    """The lines of a UTF-8 file, gzipped if its name ends in .gz, without blanks at their ends.

    Lines end at a line feed alone (or carriage return and line feed): two files would no longer fit line by
    line if rarer signs, such as U+2028, ended lines in one of them.

    Args:
        blanks: what is taken off the ends; None: all blanks

    Raises:
        DataError: no such file, not gzip, no UTF-8 (the line is named), nothing in it.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is no whole gzip file: it is damaged, or it isn't gzipped") from None
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is no UTF-8 (byte 0x{raw[error.start]:02x}): save it as UTF-8"
        ) from None
    if "\0" in text:
        raise DataError(
            f"{path}, line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds a zero byte: it is no text"
        )
    lines = [line.strip(blanks) for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if not any(lines):
        raise DataError(f"{path} is empty: it must have one text a line")
    return lines


def read_pairs(source: Path, target: Path) -> Pairs:
    """Two files that belong together line by line. Lines that are empty in both are left out.

    Raises:
        DataError: a file that can't be read; a line that only one file has, or that is empty in one alone.
    """
    sources, targets = read_lines(source), read_lines(target)
    kept = Pairs([], [])
    for number, (one, other) in enumerate(zip(sources, targets, strict=False), 1):
        if bool(one) != bool(other):
            full, empty = (source, target) if one else (target, source)
            raise DataError(
                f"line {number} is empty in {empty} and isn't in {full}: the files must fit line by line"
                + _counts(source, target, len(sources), len(targets))
            )
        if one:
            kept.sources.append(one)
            kept.targets.append(other)
    if len(sources) != len(targets):
        longer = source if len(sources) > len(targets) else target
        first = min(len(sources), len(targets)) + 1
        raise DataError(
            f"line {first} is in {longer} alone: the files must fit line by line"
            + _counts(source, target, len(sources), len(targets))
        )
    return kept


def _counts(source: Path, target: Path, one: int, other: int) -> str:
    return "" if one == other else f", and {source} has {one} lines, {target} {other}"


def find_split(folder: Path, split: str, languages: Sequence[str]) -> list[Path] | None:
    """The files of a split, one for each language: train.en and train.de, or train.en.gz, and so on.

    "val" may also be called valid, validation or dev; a longer name such as test_2016_flickr is found by its
    beginning where it is the only one. None where there is no such split.

    Raises:
        DataError: one language without the other, or several longer names.
    """
    if not folder.is_dir():
        what = "is a file: give a folder, or two files" if folder.exists() else "doesn't exist"
        raise DataError(f"{folder} {what}")
    stems: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir()):
        name = file.name.removesuffix(".gz")
        stem, dot, language = name.rpartition(".")
        if dot and language in languages and file.is_file():
            stems.setdefault(stem, {}).setdefault(language, file)
    aliases = ALIASES.get(split, (split,))
    found = next((alias for alias in aliases if alias in stems), None)
    if found is None:
        longer = [
            stem
            for stem in stems
            if any(stem.startswith((f"{one}_", f"{one}-", f"{one}.")) for one in aliases)
        ]
        if len(longer) > 1:
            raise DataError(f"{folder} has several {split} sets: name one of {', '.join(longer)}")
        found = longer[0] if longer else None
    if found is None:
        return None
    missing = [language for language in languages if language not in stems[found]]
    if missing:
        have = next(iter(stems[found].values())).name
        raise DataError(f"{folder} has {have}, and {found}.{missing[0]} is missing")
    return [stems[found][language] for language in languages]


def load_split(paths: Sequence[Path], split: str, languages: Sequence[str]) -> Pairs:
    """A split of a folder (see `find_split`), or of two files that fit line by line.

    Two files come without splits: every text goes to train, val or test by its SHA-256, so that the same
    source is never in two of them, and the order of the lines doesn't matter.

    Raises:
        DataError: it isn't there, or can't be read.
    """
    if len(paths) == 1:
        files = find_split(paths[0], split, languages)
        if files is None:
            one, other = languages
            raise DataError(
                f"{paths[0]} has no {split} set: it needs {split}.{one} and {split}.{other}, or with .gz"
            )
        return read_pairs(*files)
    if len(paths) != 2:
        raise DataError(f"{len(paths)} paths of data: give one folder, or two files that fit line by line")
    if split not in ALIASES:
        raise DataError(f"two files have the splits {', '.join(ALIASES)}, not {split!r}")
    whole = read_pairs(*paths)
    chosen = [number for number, text in enumerate(whole.sources) if split_of(text) == split]
    if not chosen:
        raise DataError(
            f"{paths[0]} has {len(whole)} lines, too few to set any apart for {split}: give more, "
            "or a folder with train, val and test"
        )
    return Pairs([whole.sources[one] for one in chosen], [whole.targets[one] for one in chosen])


def describe_data(
    paths: Sequence[Path], splits: Mapping[str, Pairs], run: Path | None = None
) -> dict[str, Any]:
    """For config.json: where the data is, how much, and its digests.

    Args:
        run: of a run that is continued. Where its data was the same texts in another place, that place stays
            written down, so that data may be moved.
    """
    facts: dict[str, Any] = {
        split: {"pairs": len(pairs), "sha256": pairs.digest()} for split, pairs in splits.items()
    }
    places = [str(path.resolve()) for path in paths]
    before = {} if run is None else dict(read_config(run).get("data") or {})
    earlier = before.pop("paths", places)
    return {"paths": earlier if before == facts else places, **facts}


def split_of(text: str) -> str:
    """The split that a text falls into by its SHA-256: 3% val, 3% test, else train."""
    place = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return "val" if place < SHARE else "test" if place < 2 * SHARE else "train"
