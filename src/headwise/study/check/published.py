"""Published versions stay as they were."""

from __future__ import annotations

from headwise.study import versions
from headwise.study.check.checking import Checking


def check_published(checking: Checking) -> None:
    """Every file of every version is there, with the content it was published with."""
    for error in versions.check(checking.guide.folder):
        checking.error(error.message, error.file, error.line)
