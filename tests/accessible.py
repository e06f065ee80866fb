"""axe in a page: whatever keeps it from those who can't see it, or use no mouse.

The script is put into a page once, and only what it complains of comes back. Most of its time goes into the
rules, of which only those of colour differ between the light and the dark theme.
"""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT

COLOUR = ("color-contrast", "link-in-text-block")
"""The rules of colour that axe holds a page to by itself."""

_RUN = """(rules) => axe.run(document, {
    resultTypes: ["violations"],
    ...(rules.length ? { runOnly: { type: 'rule', values: rules } } : {}),
}).then(({ violations }) => violations.map(({ id, nodes }) =>
    [id, ...nodes.slice(0, 3).map((node) => `${node.target} ${node.html.slice(0, 120)}`)].join(": ")))"""


def violations(page, rules=()):
    """What axe complains of: "rule: places"; [] where all is well.

    Args:
        rules: only these, such as COLOUR; all that axe runs by itself, if there are none.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(_RUN, list(rules))


def violations_in_both_themes(page, themed):
    """All rules in the light theme, then those of colour in the dark one. The page is light again afterwards.

    Args:
        themed: waits until the page has the theme that it is given.
    """
    found = []
    for theme, rules in (("light", ()), ("dark", COLOUR)):
        page.emulate_media(color_scheme=theme)
        themed(theme)
        found += [f"{theme} {one}" for one in violations(page, rules)]
    page.emulate_media(color_scheme="light")
    return found
