"""The Markdown of guides: CommonMark and tables, without raw HTML and images, with formulas. Those on lines
of their own are written $$ TeX $$ (label, words="how it is read aloud").
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from mdit_py_plugins.dollarmath import dollarmath_plugin

_TAIL = re.compile(
    r"\(\s*(?P<label>[^\"()]*?)\s*[,:]?\s*words=\"(?P<words>(?:[^\"\\]|\\.)*)\"\s*\)", re.DOTALL
)


def grammar(*, typographer: bool) -> MarkdownIt:
    """What reads it. The tokens of a formula on lines of its own are `math_block`, with label and words in
    their meta.

    Args:
        typographer: quotation marks and dashes become those of print.
    """
    md = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": typographer})
    md.disable(["image", "replacements", "html_block", "html_inline"], ignoreInvalid=True)
    md.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False)
    md.block.ruler.__rules__ = [rule for rule in md.block.ruler.__rules__ if rule.name != "math_block"]
    md.use(_math_block)  # in place of the plugin's, which knows no words
    return md


def _math_block(md: MarkdownIt) -> None:
    md.block.ruler.before(
        "fence", "math_block", _rule, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start) or not _line(state, start).startswith("$$"):
        return False
    text, number = _line(state, start)[2:], start
    while "$$" not in text:
        number += 1
        if number >= end or state.sCount[number] < state.blkIndent:
            return False
        text += "\n" + _line(state, number)
    tex, _, tail = text.partition("$$")
    tail = tail.strip()
    while tail and not _TAIL.fullmatch(tail):  # the label may go on in the next lines
        number += 1
        if number >= end or not _line(state, number).strip() or not tail.startswith("("):
            return False
        tail = f"{tail} {_line(state, number).strip()}"
    if silent:
        return True
    found = _TAIL.fullmatch(tail)
    token = state.push("math_block", "math", 0)
    token.block = True
    token.content = tex.strip()
    token.map = [start, number + 1]
    token.meta = {
        "label": found["label"].partition(":")[2].strip() or found["label"].strip() if found else "",
        "words": re.sub(r"\\(.)", r"\1", found["words"]) if found else "",
    }
    state.line = number + 1
    return True
