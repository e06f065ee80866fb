"""Last of all: whether the pages can be made of every text."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.errors import GuideError
from headwise.study.maths import FILE, NotStored, StoredMaths
from headwise.study.render.markdown import to_html


def check_rendering(checking: Checking) -> None:
    """Every text becomes HTML: so each formula has its stored MathML, and nothing is left for the build to
    refuse. Where a line has an error already, that one is enough; where no formula is stored, one for all."""
    guide = checking.guide
    try:
        maths = StoredMaths.of(guide.folder)
    except GuideError as error:
        checking.error(error.message, error.file, error.line)
        return
    told = {(fault.file, fault.line) for fault in checking.faults if not fault.warning}
    for text, _ in checking.texts:
        try:
            to_html(text.text, guide, maths=maths, file=text.file, line=text.line, inline=text.inline)
        except NotStored as error:
            if maths.empty:
                checking.error(
                    f"it has the MathML of no formula: run python -m headwise.study.authoring {guide.folder}",
                    checking.file(FILE),
                )
            elif (error.file, error.line) not in told:
                checking.error(error.message, error.file, error.line)
        except GuideError as error:
            if (error.file, error.line) not in told:
                checking.error(error.message, error.file, error.line)
