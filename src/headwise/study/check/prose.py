"""What a Markdown text holds: words, formulas, links, code, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from headwise.study.render.grammar import grammar


@dataclass(frozen=True)
class Piece:
    """A piece of a text and its line in the file.

    Attributes:
        kind: "text", "math", "display", "link", "code" (between backticks) or "fence".
        content: the words, the TeX, the link's address, the code.
        more: of "display": its label and words; of "fence": its language.
    """

    kind: str
    content: str
    line: int
    more: dict[str, str] = field(default_factory=dict)


def pieces(text: str, line: int, *, inline: bool = False) -> list[Piece]:
    """The pieces of a Markdown text that begins at this line."""
    tokens = _parser().parseInline(text) if inline else _parser().parse(text)
    return list(_pieces(tokens, line))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Reads what the pages' own parser reads."""
    return grammar(typographer=False).disable("text_join")  # so that \\$ is told from $


def _pieces(tokens: list[Token], first: int) -> Iterator[Piece]:
    line = first
    for token in tokens:
        line = first + token.map[0] if token.map else line
        if token.type == "math_block":
            more = {key: str(token.meta.get(key, "")) for key in ("label", "words")}
            yield Piece("display", token.content, line, more)
        elif token.type in ("fence", "code_block"):
            language = (token.info.split() or [""])[0]
            yield Piece("fence", token.content, line + (token.type == "fence"), {"language": language})
        here = line
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                here += 1
            elif child.type == "link_open":
                yield Piece("link", str(child.attrs.get("href", "")), here)
            elif child.type == "math_inline":
                yield Piece("math", child.content, here)
            elif child.type == "code_inline":
                yield Piece("code", child.content, here)
            elif (child.type == "text" and child.content) or (
                child.type == "text_special" and child.content != "$"
            ):
                yield Piece("text", child.content, here)
