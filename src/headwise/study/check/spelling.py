"""Spelling: every word of the prose is in a dictionary, or in the guide's own words.txt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from spellchecker import SpellChecker

from headwise.study.check.checking import Checking
from headwise.study.content import Guide
from headwise.study.errors import GuideError

FILE = "words.txt"

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LEFT_OUT = re.compile(
    r"\{\{[^}]*\}\}"  # facts
    r"|https?://\S+|\S+@\S+"  # addresses
    r"|\S*[_\\/=<>]\S*"  # names of code, paths
    r"|\w*\d\w*"  # 2048, 3x, h2
    r"|\b\w+(?:\.\w+)+\b"  # headwise.attention
)
_BRITISH = (  # endings of British spelling, and what the dictionary has for them
    ("isations", "izations"),
    ("isation", "ization"),
    ("ising", "izing"),
    ("ised", "ized"),
    ("iser", "izer"),
    ("isers", "izers"),
    ("ises", "izes"),
    ("ise", "ize"),
    ("ysed", "yzed"),
    ("yses", "yzes"),
    ("ysing", "yzing"),
    ("yse", "yze"),
    ("our", "or"),
    ("ours", "ors"),
    ("oured", "ored"),
    ("ouring", "oring"),
    ("ourful", "orful"),
    ("ourite", "orite"),
    ("ourites", "orites"),
    ("ourable", "orable"),
    ("ourhood", "orhood"),
    ("ourhoods", "orhoods"),
    ("ourless", "orless"),
    ("iour", "ior"),
    ("iours", "iors"),
    ("ioural", "ioral"),
    ("tre", "ter"),
    ("tres", "ters"),
    ("tred", "tered"),
    ("ogue", "og"),
    ("ogues", "ogs"),
    ("lled", "led"),
    ("lling", "ling"),
    ("ller", "ler"),
    ("llers", "lers"),
    ("elled", "eled"),
    ("ence", "ense"),
)


def check_spelling(checking: Checking) -> None:
    """Words of prose; what stands in code and formulas isn't read. An abbreviation in capitals is no word."""
    own, faults = own_words(checking.guide)
    for fault in faults:
        checking.error(fault.message, fault.file, fault.line)
    told: set[tuple[str, int, str]] = set()
    for text, found in checking.texts:
        for piece in found:
            if piece.kind not in ("text", "display"):
                continue
            prose = piece.content if piece.kind == "text" else piece.more["words"]
            for word in unknown_words(prose, own):
                if (text.file, piece.line, word) not in told:
                    told.add((text.file, piece.line, word))
                    checking.error(_message(word), text.file, piece.line)


def own_words(guide: Guide) -> tuple[set[str], list[GuideError]]:
    """The words of words.txt: one a line, # begins a remark. One with a capital counts only as it is written;
    the others however they are capitalised."""
    path = guide.folder / FILE
    found: dict[str, int] = {}
    faults = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        if not _WORD.fullmatch(word):
            faults.append(GuideError(f"{word!r} is no single word: letters alone", str(path), number))
        elif word in found:
            faults.append(GuideError(f"{word!r} stands at line {found[word]} too", str(path), number))
        found.setdefault(word, number)
    return set(found), faults


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def unknown_words(prose: str, own: Iterable[str] = ()) -> list[str]:
    """The words of a text that neither the dictionary nor `own` has."""
    own = own if isinstance(own, set) else set(own)
    return [word for word in _words(prose) if not _known(word, own)]


def _words(prose: str) -> Iterator[str]:
    for match in _WORD.finditer(_LEFT_OUT.sub(" ", prose)):
        word = match[0].replace("’", "'")
        word = word.removesuffix("'s")
        capitals = sum(letter.isupper() for letter in word)
        if len(word) < 2 or (capitals and word[1:] != word[1:].lower()):
            continue  # a letter; BLEU, PyTorch, LSTMs
        yield word


def _known(word: str, own: set[str]) -> bool:
    if word in own or word.lower() in own:
        return True
    return _in_dictionary(word.lower())


@lru_cache(maxsize=20_000)
def _in_dictionary(word: str) -> bool:
    checker = _checker()
    if checker.known([word]) or word in _SHORT:
        return True
    for ending, other in _BRITISH:
        if word.endswith(ending) and checker.known([word.removesuffix(ending) + other]):
            return True
    for start in ("un", "non", "re", "sub", "pre", "multi", "over", "mis", "out"):
        rest = word.removeprefix(start)
        if rest != word and len(rest) > 3 and checker.known([rest]):
            return True
    return False


_DENIED = "are ca could did does do had has have is must need sha should was were wo would"
_SHORT = frozenset(
    f"{start}'{end}"
    for starts, end in (
        ("i you we they he she it who there that what", "ll"),
        ("i you we they he she it who there that", "d"),
        ("i you we they who could should would might must", "ve"),
        ("you we they who", "re"),
        ("i", "m"),
    )
    for start in starts.split()
) | frozenset(f"{start}n't" for start in _DENIED.split())


def _message(word: str) -> str:
    nearest = _checker().correction(word.lower())
    hint = f" (did you mean {nearest!r}?)" if nearest and nearest != word.lower() else ""
    return f"the dictionary has no {word!r}{hint}: correct it, or add it to {FILE}"


@lru_cache(maxsize=1)
def _checker() -> SpellChecker:
    return SpellChecker(language="en", distance=1)
