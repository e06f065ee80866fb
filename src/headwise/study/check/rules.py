"""All checks of a guide, one after another."""

from __future__ import annotations

from pathlib import Path

from headwise.study.check.cards import check_cards
from headwise.study.check.checking import Checking
from headwise.study.check.code import check_code
from headwise.study.check.examples import check_examples
from headwise.study.check.facts import check_facts
from headwise.study.check.fault import Fault
from headwise.study.check.ids import check_ids
from headwise.study.check.links import check_links
from headwise.study.check.maths import check_maths
from headwise.study.check.numbers import check_numbers
from headwise.study.check.order import check_order
from headwise.study.check.published import check_published
from headwise.study.check.questions import check_questions
from headwise.study.check.rendering import check_rendering
from headwise.study.check.sources import check_sources
from headwise.study.check.spelling import check_spelling
from headwise.study.check.titles import check_titles
from headwise.study.check.visuals import check_visuals
from headwise.study.content import Guide, read_guide
from headwise.study.errors import GuideError

RULES = (
    check_ids,
    check_order,
    check_titles,
    check_sources,
    check_facts,
    check_questions,
    check_examples,
    check_cards,
    check_visuals,
    check_links,
    check_maths,
    check_numbers,
    check_spelling,
    check_code,
    check_rendering,
    check_published,
)


NEEDED = ("anchors.json", "sources.toml", "facts.toml", "activities")
"""What all else leads to. Where one of these can't be read at all, only what reading tells is told: whatever
names something in it would be a fault too."""


def check_guide(folder: Path | str, *, run: bool = True) -> list[Fault]:
    """Everything that is wrong or doubtful in a guide, by file and line.

    Args:
        run: run the code of lessons and of shape traces too.
    """
    guide, errors = read_guide(folder)
    faults = [Fault(error) for error in errors]
    if guide is not None and not _without(guide, errors):
        checking = Checking(guide, run=run)
        for rule in RULES:
            rule(checking)
        faults += checking.faults
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line))


def _without(guide: Guide, errors: list[GuideError]) -> bool:
    """Whether a part that is needed is empty since it can't be read."""
    unread = {error.file for error in errors}
    return any(
        not getattr(guide, name.partition(".")[0]) and str(guide.folder / name) in unread for name in NEEDED
    )
