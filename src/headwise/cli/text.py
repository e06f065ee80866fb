"""Where the text comes from: the command line, a file, standard input, or the sample."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from headwise.cli.errors import UserError

SAMPLE = "the sample text"
_BEGINS = re.compile(r"\.{0,2}/\S|~/|\\\\|[A-Za-z]:\\|\.{1,2}\\|runs/\S")


@dataclass(frozen=True)
class Text:
    """A text and where it came from."""

    content: str
    origin: str


def read_text(argument: str | None) -> Text:
    """`-` is standard input, the path of an existing file is that file, anything else is the text itself;
    None is the sample text.

    Raises:
        UserError: a missing file, a folder, a file that holds no UTF-8 text, an empty text.
    """
    sample = (files("headwise.cli") / "samples" / "lighthouse.txt").read_text(encoding="utf-8").strip()
    if argument is None:
        return Text(sample, SAMPLE)
    if argument == "-":
        found = Text(_decode(sys.stdin.buffer.read(), "standard input"), "standard input")
    elif _exists(argument):
        found = Text(_read_file(Path(argument)), argument)
    elif looks_like_path(argument):
        raise UserError(
            f"no file {argument!r}, and no run either: check the path, or pipe the words in: "
            "echo WORDS | headwise see -"
        )
    else:
        found = Text(argument, "the command line")
    if not found.content.strip():
        raise UserError(f"the text from {found.origin} is empty: give at least one word")
    content = found.content.strip()
    return Text(content, SAMPLE if content == sample else found.origin)


def looks_like_path(argument: str) -> bool:
    """One word that begins like a path (/, ./, ../, ~/, C:\\, or runs/, where trained runs go), that names a
    folder which is there, or has a short ending such as .txt was meant as a file; and/or was not."""
    if not argument or any(letter.isspace() for letter in argument):
        return False
    folder, slash, name = argument.rpartition("/")
    if _BEGINS.match(argument) or (slash and name and _exists(folder)):
        return True
    suffix = Path(argument).suffix
    return 2 <= len(suffix) <= 5 and suffix[1:].isalnum() and not suffix[1:].isdigit()


def _exists(argument: str) -> bool:
    try:
        return bool(argument) and Path(argument).exists()
    except (OSError, ValueError):  # longer than any file name, or holds a NUL: a text
        return False


def _read_file(path: Path) -> str:
    if path.is_dir():
        raise UserError(f"{str(path)!r} is a folder: give a file")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"can't read {str(path)!r}: {error.strerror or error}") from None
    return _decode(raw, repr(str(path)))


def _decode(raw: bytes, name: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name} is no UTF-8 text (byte {error.start} is 0x{raw[error.start]:02x}): give a text file, "
            "saved as UTF-8"
        ) from None
    if "\0" in text:
        raise UserError(f"{name} is a binary file (byte {text.index(chr(0))} is 0): give a text file")
    return text
