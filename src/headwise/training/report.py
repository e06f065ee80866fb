"""How a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Report:
    """How a run ended.

    Attributes:
        reason: "2000 steps done", "the budget is spent", ...
        best: checkpoint, step, metric and value of the best validation; None without validation
        metrics: of the last validation
        seconds: of all the run's sessions
    """

    run: Path
    step: int
    epoch: int
    seconds: float
    reason: str
    best: Mapping[str, Any] | None
    metrics: Mapping[str, float]
    parameters: int
    precision: str
