"""The formulas of a guide: TeX in the text, MathML in a file beside it.

Browsers draw MathML by themselves, so a page needs no script for its formulas. Turning TeX into MathML is
done when a guide is written (`python -m headwise.study.authoring GUIDE`), and what comes out is stored in
formulas.json by the hash of its TeX: a build runs no JavaScript, and refuses a formula that isn't there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from headwise.study.errors import GuideError

FILE = "formulas.json"


class Formula(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One formula.

    Attributes:
        display: on a line of its own, or in a line of text.
        sha256: of the TeX that `mathml` was made of, see `digest`.
    """

    tex: str
    display: bool
    sha256: str
    mathml: str


class FormulasFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """formulas.json."""

    temml: str
    formulas: list[Formula]


def plain(tex: str) -> str:
    """TeX with its runs of spaces and line ends as one space: how it is broken into lines is no matter."""
    return " ".join(tex.split())


def digest(tex: str, display: bool) -> str:
    """What a formula is stored by."""
    mode = "display" if display else "inline"
    return hashlib.sha256(f"{mode}\n{plain(tex)}".encode()).hexdigest()


class Maths(Protocol):
    """Gives the markup of a formula."""

    def __call__(self, tex: str, *, display: bool, file: str, line: int) -> str: ...


class NotStored(GuideError):
    """The MathML of a formula is missing."""


class StoredMaths:
    """The formulas that a guide stores.

    Args:
        formulas: by their digest.
        guide: the guide's folder, for the command in an error.
    """

    def __init__(self, formulas: Mapping[str, Formula], guide: str) -> None:
        self._formulas = formulas
        self._guide = guide

    @classmethod
    def of(cls, folder: Path) -> StoredMaths:
        """Those of the guide in this folder; none, where it has no file of them.

        Raises:
            GuideError: the file can't be read, or a formula in it isn't the one it was made of.
        """
        return cls({one.sha256: one for one in read_formulas(folder)}, str(folder))

    @property
    def empty(self) -> bool:
        """Whether no formula at all is stored."""
        return not self._formulas

    def __call__(self, tex: str, *, display: bool, file: str, line: int) -> str:
        """The MathML of this formula.

        Raises:
            NotStored: there is none.
        """
        found = self._formulas.get(digest(tex, display))
        if found is None:
            mode = "display" if display else "inline"
            raise NotStored(
                f"no MathML is stored for the {mode} formula {plain(tex)!r}: it is new or was changed; run "
                f"python -m headwise.study.authoring {self._guide}",
                file,
                line,
            )
        return found.mathml


def read_formulas(folder: Path) -> list[Formula]:
    """What formulas.json holds; [] without one.

    Raises:
        GuideError: it can't be read, or a TeX in it was changed after its MathML was made.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        why = (
            "this is not UTF-8"
            if isinstance(error, UnicodeDecodeError)
            else f"this can't be read: {error.strerror}"
        )
        raise GuideError(
            f"{why}: delete it and run python -m headwise.study.authoring {folder}", str(path)
        ) from None
    try:
        stored = msgspec.json.decode(text.encode(), type=FormulasFile)
    except msgspec.DecodeError as error:
        raise GuideError(
            f"this can't be read ({error}): delete it and run python -m headwise.study.authoring {folder}",
            str(path),
            1,
        ) from None
    for one in stored.formulas:
        if one.sha256 != digest(one.tex, one.display):
            raise GuideError(
                f"the formula {one.tex!r} isn't the one its MathML was made of: run "
                f"python -m headwise.study.authoring {folder}",
                str(path),
                _line(text, one.sha256),
            )
    return stored.formulas


def written_formulas(temml: str, formulas: Mapping[str, Formula]) -> str:
    """The text of formulas.json: one formula a line, in the order of their hashes: changes read well."""
    lines = [
        "    " + json.dumps(msgspec.to_builtins(formulas[key]), ensure_ascii=False)
        for key in sorted(formulas)
    ]
    return f'{{\n  "temml": {json.dumps(temml)},\n  "formulas": [\n' + ",\n".join(lines) + "\n  ]\n}\n"


def _line(text: str, part: str) -> int:
    return text.count("\n", 0, max(text.find(part), 0)) + 1


class TexMaths:
    r"""Formulas as TeX between \( \) or \[ \], for programs that typeset TeX themselves."""

    def __call__(self, tex: str, *, display: bool, file: str, line: int) -> str:
        escaped = plain(tex).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return rf"\[{escaped}\]" if display else rf"\({escaped}\)"
