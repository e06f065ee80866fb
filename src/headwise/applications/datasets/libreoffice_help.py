"""LibreOffice's help in two languages: human translations, aligned by page and paragraph."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.clients import beside
from headwise.applications.datasets.debian import BY_HAND, Debian
from headwise.applications.errors import DataError

HELD_OUT = 60
"""Pages for validation and for the test each."""
SHORTEST, LONGEST = 3, 40
"""Words of the English side."""
PARAGRAPH = re.compile(r'<(p|h[1-6])\b[^>]*\bid="((?:par|hd|tit)_[^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
# Pages hold a word for the Mac beside that for other systems; both read as one, "CommandCtrl"
FOR_MAC = re.compile(r'<span hidden="true"[^>]*class="MAC">.*?</span></span>(?=<span hidden)', re.DOTALL)
TAG = re.compile(r"<[^>]+>")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)?")
Pair = tuple[str, str]


def read_pages(folder: Path) -> dict[Pair, str]:
    """Paragraphs by page and id, without tags."""
    found = {}
    for file in sorted(folder.rglob("*.html")):
        page = f"text/{file.relative_to(folder).as_posix()}"
        for match in PARAGRAPH.finditer(FOR_MAC.sub("", file.read_text(encoding="utf-8"))):
            text = " ".join(html.unescape(TAG.sub("", match[3])).split())
            if text:
                found[page, match[2]] = text
    return found


def pair_up(english: Mapping[Pair, str], other: Mapping[Pair, str]) -> list[tuple[str, str, str]]:
    """Page, English, other language; without paragraphs that weren't translated, or are too short or long."""
    return [
        (place[0], text, other[place])
        for place, text in english.items()
        if place in other
        and text != other[place]
        and SHORTEST <= len(text.split()) <= LONGEST
        and len(other[place].split()) <= LONGEST
    ]


def divide(pairs: list[tuple[str, str, str]], pages: set[str]) -> dict[str, list[Pair]]:
    """By page: those with the smallest SHA-1 of their names are held out. Each pair is kept once, and none of
    validation and test whose English is in training too (or, in validation, in the test)."""
    order = sorted(pages, key=lambda page: hashlib.sha1(page.encode(), usedforsecurity=False).digest())
    part = {page: "test" if n < HELD_OUT else "val" for n, page in enumerate(order[: 2 * HELD_OUT])}
    found: dict[str, dict[Pair, None]] = {"train": {}, "val": {}, "test": {}}
    for page, english, other in pairs:
        found[part.get(page, "train")][english, other] = None
    known = {english for english, _ in found["train"]}
    kept = {"train": list(found["train"])}
    for split in ("test", "val"):
        kept[split] = [pair for pair in found[split] if pair[0] not in known]
        known |= {english for english, _ in kept[split]}
    return kept


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    code = language or "de"
    if not LANGUAGE.fullmatch(code) or code.startswith("en"):
        raise DataError(
            f"--language {code}: write the code of a language other than English, such as de or pt-br"
        )
    debian = Debian(fresh=fresh, say=say)
    names = ("libreoffice-help-en-us", f"libreoffice-help-{code}")
    with beside(folder) as unpacked:
        files = tuple(debian.unpack(name, unpacked) for name in names)
        helps = unpacked / "usr/share/libreoffice/help"
        sides = []
        for wanted in ("en-us", code):
            there = [one for one in helps.glob("*/text") if one.parent.name.lower() == wanted]
            if not there:
                raise DataError(f"libreoffice-help-{wanted} holds no pages where they are expected")
            sides.append(read_pages(there[0]))
        copyright = unpacked / f"usr/share/doc/{names[1]}/copyright"
        if copyright.is_file():
            (folder / "COPYRIGHT").write_bytes(copyright.read_bytes())
    english, other = sides
    splits = divide(pair_up(english, other), {page for page, _ in english})
    for split, pairs in splits.items():
        for side, name in enumerate(("en", code)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{name}").write_text(text, encoding="utf-8")
    return Made({split: len(pairs) for split, pairs in splits.items()}, files)


DATASET = Dataset(
    name="libreoffice-help",
    application="translation",
    about="LibreOffice's help, English and German (or --language), split by page",
    counts={"train": 25_710, "val": 599, "test": 435},
    licence="MPL-2.0, The Document Foundation and LibreOffice's translators",
    download="5 MB",
    client="apt-get, dpkg-deb",
    by_hand=BY_HAND.format(what="libreoffice-help-en-us and libreoffice-help-de"),
    make=make,
    language="de",
    settings=lambda language: () if language in (None, "de") else (f"target={language}",),
)
