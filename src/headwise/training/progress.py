"""What a run says while it goes: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO


def duration(seconds: float) -> str:
    """1:02:03, or 2:03 below an hour."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def figure(value: Any) -> str:
    """A number in few characters."""
    if not isinstance(value, float):
        return str(value)
    return (
        f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    )


class Progress:
    """Loss, rate, tokens (or what else is counted) per second, and time left.

    Args:
        show: False says nothing (processes other than the first; tests)
        file: where to; standard error where it isn't given
    """

    def __init__(self, *, show: bool = True, file: TextIO | None = None) -> None:
        self._file = file if file is not None else sys.stderr
        self._show = show
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self._show and self._file.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, TextColumn
                from rich.progress import Progress as Bar
            except ModuleNotFoundError:  # plain lines will do
                return self
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
            self._bar = Bar(*columns, console=Console(file=self._file), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("training", total=1.0, words="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """One line that stays."""
        if not self._show:
            return
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=self._file, flush=True)

    def step(self, step: int, share: float, figures: Mapping[str, Any], left: float | None) -> None:
        """A step is done: `share` of the run, `left` seconds to go, as far as anyone can tell."""
        if not self._show:
            return
        words = "  ".join(f"{name} {figure(value)}" for name, value in figures.items())
        if left is not None:
            words += f"  left {duration(left)}"
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=f"step {step}", words=words)
        else:
            self.say(f"step {step}  {words}")
