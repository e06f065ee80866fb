"""What is wrong with a guide, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence


class GuideError(ValueError):
    """A fault in a guide; `str` gives "file:line: message".

    Args:
        message: the values, the rule and the fix.
        file: the file as a reader finds it, from the folder that the command was given.
        line: counted from 1; 0 where the whole file is meant.
        others: more faults that were found in the same reading.
    """

    def __init__(
        self, message: str, file: str = "", line: int = 0, *, others: Sequence[GuideError] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.others = tuple(others)

    @classmethod
    def of(cls, errors: Sequence[GuideError]) -> GuideError:
        """Several faults as one: the first, which holds the others."""
        first, *others = errors
        return cls(first.message, first.file, first.line, others=others)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return place + self.message

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GuideError):
            return NotImplemented
        return (self.file, self.line, self.message) == (other.file, other.line, other.message)

    def __hash__(self) -> int:
        return hash((self.file, self.line, self.message))
