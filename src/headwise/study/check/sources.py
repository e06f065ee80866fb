"""Sources: everything rests on a place of the paper, or says why not."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.content import Deck, Lesson, Quiz, Visual, canonical
from headwise.study.content.sources import QUOTE_WORDS


def check_sources(checking: Checking) -> None:
    """Every block, question, card, visual and fact names places that the paper has and that sources.toml
    tells of, or gives a reason; quotes are short."""
    guide = checking.guide
    used: set[str] = set()

    def named(
        what: str, sources: list[str], reason: str, file: str, line: int, optional: bool = False
    ) -> None:
        used.update(sources)
        if not sources and not reason.strip() and not optional:
            checking.error(f"{what} names no source: give sources, or sources=none and a reason", file, line)
        for source in sources:
            _check_place(checking, source, file, line)
        if len(set(sources)) < len(sources):
            checking.error(f"{what} names a source twice: {' '.join(sources)}", file, line)

    for activity in guide.activities.values():
        file = checking.file(activity)
        if isinstance(activity, Lesson):
            for block in activity.walk():
                outside = block.kind == "later"
                named(f"#{block.id}", block.sources, block.reason, file, block.line, optional=outside)
                if block.quote:
                    _check_quote(checking, block.quote, block.sources, file, block.line)
        elif isinstance(activity, Quiz):
            for number, question in enumerate(activity.questions):
                line = checking.line(file, "questions", number, "sources")
                named(question.id, question.sources, question.reason, file, line)
        elif isinstance(activity, Deck):
            for number, card in enumerate(activity.cards):
                line = checking.line(file, "cards", number, "sources")
                named(card.id, card.sources, card.reason, file, line)
        elif isinstance(activity, Visual):
            named(activity.id, activity.sources, activity.reason, file, checking.line(file, "sources"))
    for fact in guide.facts.values():
        file = checking.file("facts.toml")
        named(fact.id, fact.sources, fact.reason, file, checking.line(file, fact.id, "sources"))
    for _, found in checking.texts:
        for piece in found:
            if piece.kind == "link" and piece.content.startswith("source:"):
                used.add(canonical(piece.content.partition(":")[2]))
    _check_entries(checking, used)


def _check_place(checking: Checking, source: str, file: str, line: int) -> None:
    if source not in checking.guide.anchors:
        checking.error(f"the paper has no place {source}: see anchors.json", file, line)
    elif source not in checking.guide.sources:
        checking.error(
            f'sources.toml tells nothing of {source}: add ["{source}"] with about = "..."', file, line
        )


def _check_quote(checking: Checking, quote: str, sources: list[str], file: str, line: int) -> None:
    source = checking.guide.sources.get(quote)
    if quote not in sources:
        checking.error(
            f"quote={quote}, but the block's sources are {' '.join(sources) or 'none'}", file, line
        )
    elif source is not None and not source.quote:
        checking.error(f"sources.toml has no quote of {quote}: add one, or leave quote out here", file, line)


def _check_entries(checking: Checking, used: set[str]) -> None:
    file = checking.file("sources.toml")
    for source in checking.guide.sources.values():
        if source.id not in checking.guide.anchors:
            checking.error(f"the paper has no place {source.id}: see anchors.json", file, source.line)
        if not source.about.strip():
            checking.error(f"{source.id}: about says nothing of the passage", file, source.line)
        words = len(source.quote.split())
        if words > QUOTE_WORDS:
            checking.error(
                f"{source.id}: the quote has {words} words: at most {QUOTE_WORDS} are quoted of a passage",
                file,
                source.line,
            )
        if source.id not in used and source.kind not in ("section", "list", "item", "reference"):
            checking.warn(f"nothing in the guide rests on {source.id}", file, source.line)
    anchors = checking.guide.anchors
    for anchor in anchors.values():
        if anchor.parent is not None and anchor.parent not in anchors:
            checking.error(
                f"{anchor.id}: its parent {anchor.parent} is no place", checking.file("anchors.json"), 1
            )
