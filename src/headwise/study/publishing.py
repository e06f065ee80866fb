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


def refuse_unchanged(guide: Guide) -> None:
    """Refuse a guide that says what its newest version says, letter by letter: a version more would tell
    readers of a change that there isn't. A guide without versions is never refused.

    Raises:
        GuideError: nothing has changed, or the newest version can't be read.
    """
    known = versions.published(guide.folder)
    if not known:
        return
    newest = known[-1]
    was = versions.manifest(guide.folder, newest.number)
    made = render_content(guide, "static", version=newest)  # as it would have been published then
    if (versions.hashes(made), versions.ids_within(guide)) == (was.files, was.places):
        raise GuideError(
            f"nothing is published: the guide is the same, page by page, as its version {newest.number} of "
            f"{newest.published[:10]}; change something first",
            str(guide.folder),
        )


def publish_guide(guide: Guide, note: str, now: datetime | None = None) -> Version:
    """Render what the guide says as the next version and store it.

    Raises:
        GuideError: the guide can't be rendered, the note is empty, or a version isn't as it was.
    """
    version = versions.next_version(guide.folder, note, now)
    versions.publish(guide, render_content(guide, "static", version=version), version)
    return version
