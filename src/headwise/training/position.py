"""Where a run stands: everything of a checkpoint that isn't a tensor or a random state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from headwise.training.recipe import Recipe
from headwise.training.task import Better


@dataclass
class Position:
    """A run between two steps.

    Attributes:
        step: steps done
        epoch, batch: the next batch to take
        seconds: of all sessions
        validated: the step of the last validation; -1 before the first
        metrics: what it found
        best: {"name": checkpoint, "step", "metric", "value"} of the best validation
        stale: validations since then
        window: sums since the last line of metrics
        rate, norm: of the last step; None before the first
        lines: of metrics.jsonl
        precision: "float32" or "bfloat16", once it is known
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    validated: int = -1
    metrics: dict[str, float] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    stale: int = 0
    window: dict[str, float] = field(default_factory=dict)
    rate: float | None = None
    norm: float | None = None
    lines: int = 0
    precision: str = "float32"

    def to_state(self) -> dict[str, Any]:
        """For state.json."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Position:
        """What `to_state` gave, among other entries."""
        return cls(**{one.name: state[one.name] for one in fields(cls) if one.name in state})

    def add(self, sums: Mapping[str, float]) -> None:
        """Add a step's sums to those since the last line."""
        for name, value in sums.items():
            self.window[name] = self.window.get(name, 0.0) + value

    def note_validation(self, metrics: Mapping[str, float], metric: str, better: Better) -> bool:
        """Take in what a validation found; True where it is the best so far. NaN is never better.

        Raises:
            ValueError: the metric isn't among them.
        """
        if metric not in metrics:
            raise ValueError(
                f"validate() returned {', '.join(metrics) or 'nothing'}, without the task's metric {metric!r}"
            )
        self.validated = self.step
        self.metrics = {name: float(value) for name, value in metrics.items()}
        value = self.metrics[metric]
        before = self.best["value"] if self.best else None
        improved = value == value and (
            before is None or (value > before if better == "higher" else value < before)
        )
        if improved:
            self.best = {"name": f"step-{self.step}", "step": self.step, "metric": metric, "value": value}
            self.stale = 0
        else:
            self.stale += 1
        return improved

    def reason_to_end(self, recipe: Recipe, over_budget: bool) -> str | None:
        """Why the run is over; None while it isn't."""
        if recipe.steps is not None and self.step >= recipe.steps:
            return f"{recipe.steps} steps done"
        if recipe.epochs is not None and self.epoch >= recipe.epochs:
            return f"{recipe.epochs} epochs done"
        if recipe.patience is not None and self.stale >= recipe.patience:
            return f"{self.stale} validations without a better one"
        return "the budget is spent" if over_budget else None

    def share_done(self, recipe: Recipe, epoch_length: int | None) -> float:
        """Share of the run that is done, in 0..1, by what ends it first.

        Args:
            recipe: its steps, epochs and budget
            epoch_length: batches of an epoch, if known
        """
        shares = [self.step / recipe.steps] if recipe.steps else []
        if recipe.epochs and epoch_length:
            shares.append((self.epoch + self.batch / epoch_length) / recipe.epochs)
        if recipe.budget_minutes:
            shares.append(self.seconds / 60 / recipe.budget_minutes)
        return min(1.0, max(shares, default=0.0))
