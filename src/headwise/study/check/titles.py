"""Titles: parts and activities can be told apart by them."""

from __future__ import annotations

from headwise.study.check.checking import Checking


def check_titles(checking: Checking) -> None:
    """No two parts or activities have the same title, case and spaces aside: the list of all, the way to a
    page and what a search finds name them by it."""
    guide = checking.guide
    main = checking.file("guide.toml")
    seen: dict[str, str] = {}
    for number, part in enumerate(guide.parts):
        _once(checking, seen, part.title, main, checking.line(main, "parts", number, "title"))
    for activity in guide.activities.values():
        file = checking.file(activity)
        _once(checking, seen, activity.title, file, checking.line(file, "title"))


def _once(checking: Checking, seen: dict[str, str], title: str, file: str, line: int) -> None:
    plain = " ".join(title.lower().split())
    if plain and plain in seen:
        checking.error(
            f"the title {title!r} stands at {seen[plain]} too: give each part and activity one of its own",
            file,
            line,
        )
    seen.setdefault(plain, f"{file}:{line}")
