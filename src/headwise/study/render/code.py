"""Code on pages, and what it prints."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

NAMES = {"python": "Python code", "text": "Text", "": "Text", "console": "Commands", "bash": "Commands"}


@lru_cache(maxsize=512)
def highlighted(code: str, language: str) -> Markup:
    """Code as HTML, with classes for its parts."""
    label = NAMES.get(language, f"{language} code")
    try:
        lexer = get_lexer_by_name(language) if language not in ("", "text") else None
    except ClassNotFound:
        lexer = None
    inner = Markup(highlight(code, lexer, HtmlFormatter(nowrap=True))) if lexer else escape(code)
    return Markup(
        '<div class="code scroll" role="group" aria-label="{}"><pre><code>{}</code></pre></div>'
    ).format(
        label,
        Markup(str(inner).rstrip("\n")),  # escaped by Pygments
    )


def output(text: str) -> Markup:
    """What code printed."""
    return Markup(
        '<div class="output scroll" role="group" aria-label="What it prints"><p>What it prints</p>'
        "<pre><samp>{}</samp></pre></div>"
    ).format(text.rstrip("\n"))
