"""A lesson's file: front matter between +++ lines, then blocks."""

from __future__ import annotations

import msgspec

from headwise.study.content.directives import Blocks
from headwise.study.content.lesson import FrontMatter, Lesson
from headwise.study.content.toml_file import TomlFile
from headwise.study.errors import GuideError

MARK = "+++"


def front_matter(text: str) -> str:
    """What stands between the +++ lines of a lesson that was read: it begins at line 2."""
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == MARK)
    return "\n".join(lines[1:end])


def parse_lesson(text: str, name: str, file: str, errors: list[GuideError]) -> Lesson | None:
    """A lesson from its text; every fault goes into `errors`. None if its front matter can't be read.

    Args:
        name: of the file, for errors.
        file: within the guide's folder.
    """
    lines = text.splitlines()
    ends = [index for index, line in enumerate(lines) if line.rstrip() == MARK]
    if not ends or ends[0] != 0:
        errors.append(GuideError(f"a lesson begins with {MARK}, its front matter, and {MARK} again", name, 1))
        return None
    if len(ends) == 1:
        errors.append(GuideError(f"the front matter has no end: write {MARK} under it", name, 1))
        return None
    end = ends[1]
    blocks = Blocks("\n".join(lines[end + 1 :]), name, first=end + 2)
    errors += blocks.errors
    try:
        head = TomlFile(front_matter(text), name, first=2)
        front = head.convert(head.data, FrontMatter)
    except GuideError as error:
        errors.append(error)
        return None
    return Lesson(**msgspec.structs.asdict(front), blocks=blocks.blocks, file=file)
