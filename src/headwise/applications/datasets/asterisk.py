"""The English prompts of the telephone system Asterisk: one voice, 8 kHz, with what it says."""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.clients import beside
from headwise.applications.datasets.debian import BY_HAND, Debian
from headwise.applications.errors import DataError

PACKAGES = ("asterisk-core-sounds-en", "asterisk-core-sounds-en-wav")
TEXTS = "usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz"
NOTE = re.compile(r"\[[^\]]*\]|\([^)]*\)|<[^>]*>")
SIGNS = {"*": " star ", "#": " pound ", "-": " "}
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def spoken(text: str) -> str:
    """A prompt's words as they are said: small letters and apostrophes, figures written out, without notes on
    sounds ("(1 second of silence)"). Of numbers with several figures nobody knows how they are read: nothing.
    """
    text = NOTE.sub(" ", text)
    if re.search(r"\d\d", text):
        return ""
    for sign, word in SIGNS.items():
        text = text.replace(sign, word)
    text = re.sub(r"\d", lambda match: f" {DIGITS[int(match[0])]} ", text)
    return " ".join(re.sub(r"[^a-z' ]", " ", text.lower()).split())


def prompts(texts: Path, sounds: Path) -> Iterator[tuple[str, str, Path]]:
    """Name, words and sound of each prompt that has words.

    Raises:
        DataError: the list can't be read.
    """
    try:
        lines = gzip.decompress(texts.read_bytes()).decode("utf-8").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{texts.name} of {PACKAGES[0]} can't be read: {error}") from None
    for line in lines:
        name, _, text = line.partition(":")
        sound = sounds / f"{name.strip()}.wav"
        words = spoken(text)
        inside = not Path(name.strip()).is_absolute() and ".." not in Path(name.strip()).parts
        if words and inside and not name.startswith(";") and sound.is_file():
            yield name.strip(), words, sound


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    debian = Debian(fresh=fresh, say=say)
    with beside(folder) as unpacked:
        files = tuple(debian.unpack(name, unpacked) for name in PACKAGES)
        voices = sorted((unpacked / "usr/share/asterisk/sounds").glob("*"))
        if not voices:
            raise DataError(f"{PACKAGES[1]} holds no sounds where they are expected")
        rows = []
        for name, words, sound in prompts(unpacked / TEXTS, voices[0]):
            to = folder / f"{name}.wav"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(sound, to)
            rows.append(f"{name}.wav\t{words}\n")
        (folder / "transcripts.tsv").write_text("".join(rows), encoding="utf-8")
        copyright = unpacked / f"usr/share/doc/{PACKAGES[1]}/copyright"
        if copyright.is_file():
            (folder / "COPYRIGHT").write_bytes(copyright.read_bytes())
    return Made({"all": len(rows)}, files)


DATASET = Dataset(
    name="asterisk",
    application="speech",
    about="prompts of the telephone system Asterisk: one voice, 25 minutes, too few for more than letters",
    counts={"all": 549},
    licence="CC BY-SA 3.0, Allison Smith and Digium",
    download="18 MB",
    client="apt-get, dpkg-deb",
    by_hand=BY_HAND.format(what=" and ".join(PACKAGES)),
    make=make,
)
