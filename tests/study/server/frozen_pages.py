"""A small version as it was frozen one day: pages, numbers, answers.

Run as a program, this saves it anew, which is right only while no version of any guide is published: from
then on, frozen pages in this markup exist.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

SAVED = Path(__file__).with_name("frozen")
PAGES = ("", "first/", "first-quiz/", "deck/", "search/")
DATA = ("answers.json", "search.json", "visuals/first-mask.json")


def saved() -> dict[str, bytes]:
    """Its files by their way from the version's root."""
    return {
        path.relative_to(SAVED).as_posix(): path.read_bytes() for path in SAVED.rglob("*") if path.is_file()
    }


def save() -> None:
    """Write today's markup into it."""
    from small_guide import small_guide

    from headwise.study.render.pages import Version
    from headwise.study.site import render_content

    with tempfile.TemporaryDirectory() as folder:
        guide = small_guide(Path(folder) / "small")
        files = render_content(guide, "static", version=Version(1, "2026-11-30T00:00:00Z", "The first"))
    for name in (*(f"{page}index.html" for page in PAGES), *DATA):
        path = SAVED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))
    save()
