"""Freezes the current guide as its next version."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from headwise.study import versions
from headwise.study.check import check_guide
from headwise.study.content import Guide
from headwise.study.errors import GuideError
from headwise.study.render.pages import Version
from headwise.study.site import render_content


def refuse_faults(folder: Path) -> None:
    """Refuse a guide that `headwise study check` has errors for: what is published stays for ever.

    Raises:
        GuideError: the first error; `others` of it holds the rest.
    """
    errors = [fault.error for fault in check_guide(folder) if not fault.warning]
    if errors:
        raise GuideError.of(errors)


def publish_guide(guide: Guide, note: str, now: datetime | None = None) -> Version:
    """Render what the guide says as the next version and store it.

    Raises:
        GuideError: the guide can't be rendered, the note is empty, or a version isn't as it was.
    """
    version = versions.next_version(guide.folder, note, now)
    versions.publish(guide, render_content(guide, "static", version=version), version)
    return version
