"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.study.errors import GuideError


@dataclass(frozen=True)
class Fault:
    """Something wrong in a guide, or only doubtful: a warning keeps no guide from being published."""

    error: GuideError
    warning: bool = False

    @property
    def file(self) -> str:
        return self.error.file

    @property
    def line(self) -> int:
        return self.error.line

    def __str__(self) -> str:
        if not self.warning:
            return str(self.error)
        return str(GuideError(f"warning: {self.error.message}", self.file, self.line))
