"""Markdown to HTML that is safe to show: no raw HTML, no scripts, no style attributes."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape

from headwise.study.content import Guide
from headwise.study.maths import Maths, StoredMaths
from headwise.study.render import fill
from headwise.study.render.code import highlighted, output
from headwise.study.render.context import Context
from headwise.study.render.grammar import grammar
from headwise.study.render.links import resolved
from headwise.study.render.reading import read_tex

Env = MutableMapping[str, Any]
KEY = "study"
LONG = 24
"""Characters of TeX from which on an inline formula may be wider than a narrow page."""

_ALIGN = re.compile(r"text-align:\s*(left|center|right)")


def to_html(
    text: str,
    guide: Guide,
    *,
    maths: Maths | None = None,
    root: str = "../",
    file: str = "",
    line: int = 1,
    inline: bool = False,
    links: bool = True,
) -> Markup:
    """Markdown as HTML.

    Args:
        maths: what formulas become; if not given, the MathML that the guide stores.
        root: from the page to the guide's front page.
        file, line: where the text begins, for errors.
        inline: one paragraph, without its tags.
        links: whether links are links; in headings and labels they are only their text.

    Raises:
        GuideError: a fact, a link or a formula isn't there.
    """
    context = Context(
        guide, maths or StoredMaths.of(guide.folder), root=root, file=file, line=line, links=links
    )
    return rendered(text, context, inline=inline)


def rendered(text: str, context: Context, *, inline: bool = False) -> Markup:
    """`to_html` within a context."""
    md, env = _parser(), {KEY: context}
    html = md.renderInline(text, env) if inline else md.render(text, env)
    return Markup(html)  # raw HTML is off, and every rule below escapes


def split(text: str, context: Context) -> tuple[Markup, Markup]:
    """The first paragraph without its tags, and the rest. Where the text begins with something else than a
    paragraph, the first is empty."""
    md, env = _parser(), {KEY: context}
    tokens = md.parse(text, env)
    if len(tokens) < 3 or tokens[0].type != "paragraph_open":
        return Markup(), rendered(text, context)
    first = md.renderer.render(tokens[1:2], md.options, env)
    return Markup(first), Markup(md.renderer.render(tokens[3:], md.options, env))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    md = grammar(typographer=True)
    md.core.ruler.push("study", _prepare)
    for name, rule in _RULES.items():
        md.add_render_rule(name, rule)
    return md


def _prepare(state: StateCore) -> None:
    """Lines for errors; numbers in formulas and code; links resolved; headings below a block's own."""
    context = state.env.get(KEY)
    if context is None:
        return
    line = context.line
    for token in state.tokens:
        line = context.line + token.map[0] if token.map else line
        token.meta["line"] = line
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(max(int(token.tag[1]) + 1, 3), 6)}"
        if token.type == "math_block":
            token.content = fill.in_tex(token.content, context, line)
        elif token.type in ("fence", "code_block"):
            token.content = fill.in_text(token.content, context, line)
        inner = line
        within = 0
        for child in token.children or ():
            child.meta["line"] = inner
            if child.type in ("softbreak", "hardbreak"):
                inner += 1
            elif child.type == "link_open":
                within += 1
                href, more = resolved(str(child.attrs.get("href", "")), context, inner)
                child.attrs = {"href": href, **more}
            elif child.type == "link_close":
                within -= 1
            elif child.type == "math_inline":
                child.content = fill.in_tex(child.content, context, inner)
            elif child.type == "code_inline":
                child.content = fill.in_text(child.content, context, inner)
            child.meta["plain"] = within > 0


def _context(env: Env) -> Context:
    found: Context = env[KEY]
    return found


def _text(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    context, token = _context(env), tokens[index]
    within = context.plain() if token.meta.get("plain") else context
    return fill.in_html(token.content, within, token.meta.get("line", context.line))


def _link(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    if not _context(env).links:
        return ""
    return str(self.renderToken(tokens, index, options, env))


def _math_inline(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    context, token = _context(env), tokens[index]
    made = context.maths(token.content, display=False, file=context.file, line=token.meta["line"])
    # Browsers break no line within a formula: on a narrow page a long one scrolls by itself.
    if len(token.content) > LONG and made.startswith("<math"):
        name = escape(read_tex(token.content))
        return f'<span class="formula scroll" data-name="Formula: {name}">{made}</span>'
    return made


def _math_block(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    context, token = _context(env), tokens[index]
    line = token.meta["line"]
    made = context.maths(token.content, display=True, file=context.file, line=line)
    words, label = token.meta.get("words", ""), token.meta.get("label", "")
    if not words:
        raise context.error(
            "a formula on a line of its own needs words for those who can't see it: "
            '$$ TeX $$ (name, words="...")',
            line,
        )
    name = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    return (
        f'<figure class="equation"{f" data-equation={chr(34)}{name}{chr(34)}" if name else ""}>'
        f'<div class="scroll" role="group" aria-label="Formula: {escape(words)}">{made}</div>'
        f'<figcaption><span class="unseen">In words: </span>{escape(words)}</figcaption></figure>\n'
    )


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    context, token = _context(env), tokens[index]
    language = (token.info.split() or [""])[0].lower()
    html = str(highlighted(token.content, language))
    later = any(one.type == "fence" and one.info.split()[:1] == ["python"] for one in tokens[index + 1 :])
    if context.printed.strip() and language == "python" and not later:
        html += str(output(context.printed))
    return f'<div class="listing">{html}</div>\n'


def _table_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    heads = []
    for token in tokens[index:]:
        if token.type == "thead_close":
            break
        if token.type == "inline":
            heads.append(_bare(fill.in_text(token.content, _context(env), token.meta["line"])))
    label = ", ".join(filter(None, heads)) or "without headings"
    return f'<div class="table scroll" role="group" aria-label="Table: {escape(label)}"><table>\n'


def _table_close(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    return "</table></div>\n"


def _cell(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    token = tokens[index]
    align = _ALIGN.search(str(token.attrs.get("style", "")))
    if token.tag == "th" and not tokens[index + 1].content.strip():
        token.tag = tokens[index + 2].tag = "td"  # a corner without words heads nothing
    scope = ' scope="col"' if token.tag == "th" else ""
    kind = f' class="{align[1]}"' if align else ""
    name = ""
    if scope and _only_formulas(tokens[index + 1]):
        name = f'<span class="unseen">{escape(_bare(tokens[index + 1].content))}</span>'
    return f"<{token.tag}{scope}{kind}>{name}"


def _only_formulas(inline: Token) -> bool:
    """Has a heading no word beside formulas? Not every program that reads a page aloud reads those."""
    children = inline.children or []
    return bool(children) and all(
        one.type == "math_inline" or (one.type == "text" and not one.content.strip()) for one in children
    )


def _bare(text: str) -> str:
    """A heading's text without its marks."""
    return re.sub(r"[$*`\\{}]", "", text)


_RULES = {
    "text": _text,
    "link_open": _link,
    "link_close": _link,
    "math_inline": _math_inline,
    "math_block": _math_block,
    "fence": _fence,
    "code_block": _fence,
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _cell,
    "td_open": _cell,
}
