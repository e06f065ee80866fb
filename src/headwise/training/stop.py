"""Ends of a run before its time: what is said, and how it is asked for."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class TrainingStopped(Exception):
    """The run ended early. One plain line: what happened, what stays, how to go on.

    Attributes:
        exit_code: for a command: 130 after Ctrl-C (the shell's convention), 143 after SIGTERM, else 1.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StopRequests:
    """Ctrl-C and SIGTERM as a request: the step is finished and a checkpoint written before the run ends.

    A second Ctrl-C ends it at once, as Python does. Outside the main thread, where Python allows no
    handlers, signals do what they did before.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequests:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = number

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @staticmethod
    def words(number: int) -> tuple[str, int]:
        """What is said about a signal, and the exit code."""
        if number == signal.SIGINT:
            return "stopped by Ctrl-C", 130
        return f"stopped by {signal.Signals(number).name}", 128 + number
