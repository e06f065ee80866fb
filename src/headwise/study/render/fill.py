"""Numbers put where a text names them: {{fact:id}} with its unit, {{value:id}} without."""

from __future__ import annotations

import re

from markupsafe import escape

from headwise.study.content import Fact
from headwise.study.content.facts import LOWERED
from headwise.study.render.context import Context

NAMED = re.compile(r"\{\{\s*(?P<form>fact|value)\s*:\s*(?P<id>[^}\s]+)\s*\}\}")
_STRAY = re.compile(r"\{\{[^}]*\}\}")


def fact(match: re.Match[str], context: Context, line: int) -> Fact:
    """The fact that is named.

    Raises:
        GuideError: there is none.
    """
    found = context.guide.facts.get(match["id"])
    if found is None:
        raise context.error(f"facts.toml has no {match['id']}: add it, or name another", line)
    return found


def _text(match: re.Match[str], context: Context, line: int) -> str:
    found = fact(match, context, line)
    return found.text if match["form"] == "fact" else found.number


def in_text(text: str, context: Context, line: int) -> str:
    """Plain text with its numbers."""
    return NAMED.sub(lambda match: _text(match, context, line), text)


def in_tex(tex: str, context: Context, line: int) -> str:
    """TeX with its numbers: 1{,}048{,}576; 3.3 \\times 10^{18}."""

    def number(match: re.Match[str]) -> str:
        value, _, unit = _text(match, context, line).partition("\N{NO-BREAK SPACE}")
        value = value.replace(",", "{,}").replace("\N{MINUS SIGN}", "-")
        value = re.sub(
            r"\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)",
            lambda power: rf" \times 10^{{{power[1].translate(LOWERED)}}}",
            value,
        )
        value = value.replace("×", r"\times ").replace("%", r"\%")
        return rf"{value}\ \text{{{unit}}}" if unit else value

    return NAMED.sub(number, tex)


def in_html(text: str, context: Context, line: int) -> str:
    """Text as HTML, in which each number leads to where it comes from."""
    parts, end = [], 0
    for match in NAMED.finditer(text):
        parts.append(str(escape(text[end : match.start()])))
        found, shown = fact(match, context, line), escape(_text(match, context, line))
        parts.append(
            f'<a class="fact" href="{context.root}numbers/#{escape(found.id)}">{shown}</a>'
            if context.links
            else str(shown)
        )
        end = match.end()
    rest = text[end:]
    stray = _STRAY.search(NAMED.sub("", text))
    if stray:
        raise context.error(f"{stray[0]} names no number: write {{{{fact:id}}}} or {{{{value:id}}}}", line)
    parts.append(str(escape(rest)))
    return "".join(parts)
