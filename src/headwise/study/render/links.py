"""Where the links of a guide's texts lead."""

from __future__ import annotations

from urllib.parse import quote

from headwise.study.content import canonical
from headwise.study.render.context import Context
from headwise.study.render.symbols import find


def resolved(href: str, context: Context, line: int) -> tuple[str, dict[str, str]]:
    """The address of a link from the text's page, and the attributes that its tag gets beside.

    Raises:
        GuideError: what it names isn't there, or it is a kind of link that a guide hasn't.
    """
    kind, _, rest = href.partition(":")
    if kind == "activity":
        return activity_link(rest, context, line), {}
    if kind == "source":
        return source_link(rest, context, line), {"class": "source-link"}
    if kind == "symbol":
        return symbol_link(rest, context, line), {"class": "symbol-link"}
    if href.startswith("#"):
        return href, {}
    if kind == "https":
        return href, {"rel": "noreferrer", "class": "external"}
    raise context.error(
        f"the link {href!r} can't be followed: write activity:, source:, symbol:, # or https: before what it "
        f"names",
        line,
    )


def activity_link(place: str, context: Context, line: int) -> str:
    """The address of "activity#block"."""
    name, _, block = place.partition("#")
    activity = context.guide.activities.get(name)
    if activity is None:
        raise context.error(f"there is no activity {name!r}", line)
    if not block:
        return f"{context.root}{name}/"
    if block not in activity.places():
        raise context.error(f"the activity {name!r} has no block {block!r}", line)
    return f"{context.root}{name}/#{block}"


def source_link(anchor: str, context: Context, line: int) -> str:
    """The address of what the guide says of a place of the paper."""
    name = canonical(anchor)
    if name not in context.guide.sources:
        raise context.error(f"sources.toml has no {name}: add what the guide says of that place", line)
    return f"{context.root}sources/#{quote(name)}"


def symbol_link(name: str, context: Context, line: int) -> str:
    """The address of a name of the library's."""
    try:
        find(name)
    except LookupError as error:
        raise context.error(str(error), line) from None
    return f"{context.root}library/#{quote(name)}"
