"""Recordings and what is said in them: spoken digits (FSDD), or a folder with transcripts.tsv."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from torch import Tensor

from headwise.applications.errors import DataError
from headwise.applications.sound import Sound, read_wav

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
TRANSCRIPTS = "transcripts.tsv"
_DIGIT = re.compile(r"(\d)_([^_/]+)_(\d+)\.wav")


@dataclass(frozen=True)
class Recording:
    """A sound and its transcript.

    Attributes:
        name: of its file
        samples: float32 [time]
        symbols: what is said: digits, or the letters of a text
    """

    name: str
    samples: Tensor
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Recordings:
    """What `load_recordings` found.

    Attributes:
        rate: samples per second of all of them
        joined_by: what stands between symbols in a text: " " between digits, "" between letters
        notes: what was changed in how many files
    """

    splits: dict[Split, list[Recording]]
    rate: int
    joined_by: str
    notes: tuple[str, ...]

    @property
    def symbols(self) -> list[str]:
        """All symbols of the training texts."""
        return sorted({symbol for one in self.splits["train"] for symbol in one.symbols})


def load_recordings(data: Path | str, *, rate: int | None = None) -> Recordings:
    """Recordings of a folder or a .tar / .tar.gz, split for training, validation and the final test.

    - Files called {digit}_{speaker}_{take}.wav, as in the Free Spoken Digit Dataset: takes 0 to 4 are the
      test (its official split), 5 to 7 are for validation.
    - A folder with transcripts.tsv, which has a file's path, a tab, and its text on each line, in UTF-8. Of
      ten files about one each is held out for test and validation, chosen by a hash of its path. Texts are
      read letter by letter, in lower case.

    Args:
        rate: samples per second to bring all to. Default: that of the first file.

    Raises:
        DataError: nothing there, another form, a sound or line that can't be used (it is named).
    """
    path = Path(data)
    if not path.exists():
        raise DataError(
            f"there is no {path}: give a folder or .tar.gz of recordings called digit_speaker_take.wav, or a "
            f"folder with {TRANSCRIPTS}"
        )
    transcripts = path / TRANSCRIPTS
    rows = _transcribed(transcripts) if transcripts.is_file() else _digits(path)
    changes: Counter[str] = Counter()
    splits: dict[Split, list[Recording]] = {split: [] for split in SPLITS}
    for split, name, symbols, file in rows:
        sound = _sound(file, name, rate)
        rate = sound.rate
        changes.update(sound.notes)
        splits[split].append(Recording(name, sound.samples, symbols))
    for split, found in splits.items():
        if not found:
            raise DataError(f"{path} has no recordings for {split}: give more of them")
    notes = tuple(f"{count:,} files: {note}" for note, count in changes.items())
    return Recordings(splits, rate or 0, "" if transcripts.is_file() else " ", notes)


Row = tuple[Split, str, tuple[str, ...], Path | IO[bytes]]


def _sound(file: Path | IO[bytes], name: str, rate: int | None) -> Sound:
    return read_wav(file, rate=rate, name=name)


def _digits(path: Path) -> Iterator[Row]:
    """Takes of digits in a folder or an archive, in the order of their names."""
    found = 0
    for name, file in sorted(_files(path), key=lambda pair: pair[0]):
        match = _DIGIT.fullmatch(name)
        if match is None:
            continue
        found += 1
        digit, _, take = match.groups()
        split: Split = "test" if int(take) < 5 else "valid" if int(take) < 8 else "train"
        yield split, name, (digit,), file
    if not found:
        raise DataError(
            f"{path} has no recordings called digit_speaker_take.wav, such as 7_george_12.wav, and no "
            f"{TRANSCRIPTS}"
        )


def _files(path: Path) -> Iterator[tuple[str, Path | IO[bytes]]]:
    if path.is_dir():
        for file in path.rglob("*.wav"):
            yield file.name, file
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(".wav") else None
                if content is not None:
                    yield Path(member.name).name, io.BytesIO(content.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{path} is no archive of recordings, or a damaged one: {error}") from None


def _transcribed(transcripts: Path) -> Iterator[Row]:
    try:
        lines = transcripts.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{transcripts} is no UTF-8 text (byte {error.start}): save it as UTF-8") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, tab, text = line.partition("\t")
        symbols = tuple(" ".join(text.lower().split()))
        if not tab or not name.strip() or not symbols:
            raise DataError(f"{transcripts}, line {number}: write a file, a tab, and what is said in it")
        chosen = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10
        split: Split = "test" if chosen == 0 else "valid" if chosen == 1 else "train"
        yield split, name, symbols, transcripts.parent / name


def digest(recordings: Sequence[Recording]) -> str:
    """SHA-256 of names, transcripts and sounds."""
    found = hashlib.sha256()
    for one in recordings:
        found.update(repr((one.name, one.symbols, len(one.samples))).encode())
        found.update(one.samples.numpy().tobytes())
    return found.hexdigest()
