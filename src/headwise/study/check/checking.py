"""A guide that is being checked, and what was found so far."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from headwise.study.check.fault import Fault
from headwise.study.check.prose import Piece, pieces
from headwise.study.content import Activity, Guide, Lesson
from headwise.study.content.file_lines import FileLines
from headwise.study.errors import GuideError
from headwise.study.render.texts import Text, all_texts
from headwise.study.running import Ran, prepare, run_lessons


class Checking:
    """What every rule gets: the guide, its texts in pieces, and a list for faults.

    Attributes:
        run: whether the guide's code is run.
    """

    def __init__(self, guide: Guide, *, run: bool = True) -> None:
        self.guide = guide
        self.run = run
        self.faults: list[Fault] = []
        self._lines: dict[str, FileLines] = {}

    @cached_property
    def texts(self) -> list[tuple[Text, list[Piece]]]:
        return [(text, pieces(text.text, text.line, inline=text.inline)) for text in all_texts(self.guide)]

    @cached_property
    def ran(self) -> tuple[dict[str, dict[str, Ran]], dict[str, dict[str, Ran]]]:
        """What the code of lessons gives, twice: in two processes that go through sets in another order. The
        first has run the code of questions too.

        Raises:
            GuideError: Python can't be started.
        """
        lessons = [one for one in self.guide.activities.values() if isinstance(one, Lesson)]
        prepare(self.guide)
        first = run_lessons(lessons, self.guide.folder)
        return first, run_lessons(lessons, self.guide.folder, hash_seed=1)

    def file(self, of: Activity | str) -> str:
        """The file of an activity, or the file of this name, as errors have it."""
        return str(self.guide.folder / Path(of if isinstance(of, str) else of.file))

    def line(self, file: str, *place: str | int) -> int:
        """The line of what stands at a place of a TOML file, or of a lesson's front matter."""
        if file not in self._lines:
            self._lines[file] = FileLines(Path(file))
        return self._lines[file].key(*place)

    def error(self, message: str, file: str, line: int = 0) -> None:
        self.faults.append(Fault(GuideError(message, file, line)))

    @property
    def told(self) -> int:
        """How many faults were found so far."""
        return len(self.faults)

    def warn(self, message: str, file: str, line: int = 0) -> None:
        self.faults.append(Fault(GuideError(message, file, line), warning=True))
