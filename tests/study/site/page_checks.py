"""What every page of a site is held to, looked at in one visit of each: axe in both themes, no sideways
scrolling, one heading, nothing that goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from static_host import until

from accessible import violations_in_both_themes

WIDTHS = (320, 390, 768, 1000, 1280, 1920)


@dataclass
class Seen:
    """What was found on all pages."""

    violations: list[str] = field(default_factory=list)
    sideways: list[str] = field(default_factory=list)
    headings: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each page: how many h1 and main."""


def unfold(page):
    """Open all that is folded, and wait until the page's own script has looked at what is seen now."""
    page.evaluate(
        """async () => {
            document.querySelectorAll('details').forEach((one) => { one.open = true; });
            for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
        }"""
    )


def survey(visit, paths):
    """Look at these pages."""
    seen = Seen()
    for path in paths:
        page = visit.open(path)
        seen.headings[path] = page.locator("h1").count(), page.locator("main").count()
        unfold(page)
        seen.violations += [f"{path} {one}" for one in violations_in_both_themes(page, themed(page))]
        size = page.viewport_size
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                seen.sideways.append(f"{path}: {over} px over {width}")
        page.set_viewport_size(size)
    return seen


def themed(page):
    return lambda theme: until(page, "(theme) => document.documentElement.dataset.theme === theme", arg=theme)
