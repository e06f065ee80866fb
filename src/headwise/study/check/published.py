"""Published versions stay as they were."""

from __future__ import annotations

from headwise.study import versions
from headwise.study.check.checking import Checking


def check_published(checking: Checking) -> None:
    """Every file of every version is there, with the content it was published with. Files beside them do no
    harm, and are told."""
    folder = checking.guide.folder
    for error in versions.check(folder):
        checking.error(error.message, error.file, error.line)
    if left := versions.orphans(folder):
        count = "1 file belongs" if len(left) == 1 else f"{len(left)} files belong"
        checking.warn(
            f"{count} to no version: what a publishing that failed left behind; the next one takes it away",
            str(left[0]),
        )
