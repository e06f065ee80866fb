"""Links and names: each leads somewhere."""

from __future__ import annotations

from urllib.parse import urlsplit

from headwise.study.check.checking import Checking
from headwise.study.content import Lesson, Quiz, Resources, Visual, canonical
from headwise.study.render.symbols import symbol
from headwise.study.render.texts import Text


def check_links(checking: Checking) -> None:
    """Links within the guide lead to what is there; names are the library's; pages outside are named only
    where later research and resources are, and by https."""
    for text, found in checking.texts:
        for piece in found:
            if piece.kind == "link":
                message = _fault(checking, text, piece.content)
                if message:
                    checking.error(message, text.file, piece.line)
    for activity in checking.guide.activities.values():
        file = checking.file(activity)
        if isinstance(activity, Lesson):
            for block in activity.walk():
                for name in block.symbols:
                    if message := _missing(name):
                        checking.error(message, file, block.line)
                link = block.options.get("link", "")
                if link and (message := _address(link)):
                    checking.error(message, file, block.line)
                shown = block.options.get("visual", "")
                if shown and not isinstance(checking.guide.activities.get(shown), Visual):
                    checking.error(f"there is no visual {shown!r}", file, block.line)
        elif isinstance(activity, Resources):
            for resource in activity.resources:
                if message := _address(resource.url):
                    checking.error(message, file, resource.line)
    if checking.guide.paper.html and (message := _address(checking.guide.paper.html)):
        checking.error(message, checking.file("guide.toml"), 1)


def _fault(checking: Checking, text: Text, href: str) -> str:
    """What is wrong with a link; "" for nothing."""
    kind, _, rest = href.partition(":")
    if kind == "activity":
        return _place(checking, rest)
    if kind == "source":
        name = canonical(rest)
        if name not in checking.guide.anchors:
            return f"the paper has no place {name}: see anchors.json"
        return "" if name in checking.guide.sources else f"sources.toml tells nothing of {name}"
    if kind == "symbol":
        return _missing(rest)
    if href.startswith("#"):
        return _place(checking, f"{text.scope}{href}") if text.scope else f"{href} leads nowhere"
    if kind != "https":
        return f"the link {href!r} begins with none of activity:, source:, symbol:, https: and #"
    if not text.external:
        return f"{href} leads out of the guide: put it into a {{later}} block, or among the resources"
    return _address(href)


def _place(checking: Checking, place: str) -> str:
    name, _, block = place.partition("#")
    activity = checking.guide.activities.get(name)
    if activity is None:
        return f"there is no activity {name!r}"
    known = activity.places()
    if block and block not in known:
        what = "question" if isinstance(activity, Quiz) else "block"
        return f"{name} has no {what} {block!r}; it has {', '.join(known) or 'none'}"
    return ""


def _missing(name: str) -> str:
    try:
        symbol(name)
    except (LookupError, OSError, TypeError) as error:
        return f"{name} can't be shown: {error}" if not isinstance(error, LookupError) else str(error)
    return ""


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.netloc or any(character.isspace() for character in url):
        return f"{url!r} is no address of a page: it begins with https:// and holds no spaces"
    if parts.path.endswith("/") and parts.fragment and parts.netloc == "arxiv.org":
        return f"{url}: arXiv finds no page where a slash stands before #"
    return ""
