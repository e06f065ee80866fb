"""Ids: unique, and fit for addresses."""

from __future__ import annotations

import re

from headwise.study.check.checking import Checking
from headwise.study.content import Deck, Lesson, Quiz, Resources

ID = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")


def check_ids(checking: Checking) -> None:
    """Activities, questions, cards and resources have ids that stand once in the whole guide; blocks have ids
    that stand once in their lesson."""
    guide = checking.guide
    if not ID.fullmatch(guide.id):
        checking.error(_form(guide.id), checking.file("guide.toml"), 1)
    seen: dict[str, str] = {}
    for activity in guide.activities.values():
        file = checking.file(activity)
        _once(checking, seen, activity.id, file, activity.line)
        if isinstance(activity, Lesson):
            blocks: dict[str, int] = {}
            for block in activity.walk():
                if block.id and block.id in blocks:
                    checking.error(f"#{block.id} stands at line {blocks[block.id]} too", file, block.line)
                blocks.setdefault(block.id, block.line)
        elif isinstance(activity, Quiz):
            for question in activity.questions:
                _once(checking, seen, question.id, file, question.line)
        elif isinstance(activity, Deck):
            for card in activity.cards:
                _once(checking, seen, card.id, file, card.line)
        elif isinstance(activity, Resources):
            listed: set[str] = set()
            for resource in activity.resources:
                if resource.id in listed:
                    checking.error(f"the id {resource.id!r} stands twice in this list", file, resource.line)
                listed.add(resource.id)


def _once(checking: Checking, seen: dict[str, str], name: str, file: str, line: int) -> None:
    if not ID.fullmatch(name):
        checking.error(_form(name), file, line)
    if name in seen:
        checking.error(f"the id {name!r} stands at {seen[name]} too: ids stand once in a guide", file, line)
    seen.setdefault(name, f"{file}:{line}")


def _form(name: str) -> str:
    return f"{name!r} is no id: small letters and digits, with single hyphens or dots between them"
