"""Formulas: words for those on lines of their own, and no stray signs."""

from __future__ import annotations

import re

from headwise.study.check.checking import Checking


def check_maths(checking: Checking) -> None:
    """Every display formula has a name, once in its lesson, and words; braces and \\left, \\right and
    environments come in pairs; no dollar sign is left over."""
    names: dict[tuple[str, str], int] = {}
    for text, found in checking.texts:
        for piece in found:
            if piece.kind == "text" and "$" in piece.content:
                checking.error(
                    f"a $ is left over in {piece.content.strip()[:60]!r}: a formula on a line of its own is "
                    f'$$ ... $$ (equation: name, words="..."), one within a line $...$ without spaces at its '
                    f"ends, and a plain dollar sign \\$",
                    text.file,
                    piece.line,
                )
            if piece.kind not in ("math", "display"):
                continue
            if message := unpaired(piece.content):
                checking.error(message, text.file, piece.line)
            if piece.kind == "display":
                name = piece.more["label"]
                if not piece.more["words"].strip():
                    checking.error(
                        'this formula has no words: write $$ ... $$ (equation: name, words="as read aloud")',
                        text.file,
                        piece.line,
                    )
                elif not name:
                    checking.error(
                        'this formula has no name: write (equation: name, words="...")', text.file, piece.line
                    )
                elif (text.scope, name) in names:
                    line = names[text.scope, name]
                    checking.error(
                        f"the formula of line {line} is called {name!r} too", text.file, piece.line
                    )
                names.setdefault((text.scope, name), piece.line)


def unpaired(tex: str) -> str:
    """What lacks its other half in a formula; "" for nothing."""
    plain = re.sub(r"\\[\\{}]", "", tex)
    if plain.count("{") != plain.count("}"):
        return f"{plain.count('{')} opening and {plain.count('}')} closing braces in ${tex}$"
    for one, other in (("left", "right"), ("begin", "end")):
        count, counter = (len(re.findall(rf"\\{name}(?![a-zA-Z])", plain)) for name in (one, other))
        if count != counter:
            return f"{count} times \\{one}, but {counter} times \\{other} in ${tex}$"
    return ""
