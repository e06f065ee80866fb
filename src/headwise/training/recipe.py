"""How a model is trained: all choices in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from headwise.training.schedule import Schedule, ScheduleName, make_schedule

Precision = Literal["float32", "bfloat16", "auto"]
# What may differ when a run is resumed: it changes when a run ends and what is said, never a step's numbers
FREE_ON_RESUME = frozenset(
    {
        "shard",
        "steps",
        "epochs",
        "budget_minutes",
        "patience",
        "keep",
        "log_every",
        "tensorboard",
        "validate_at_end",
    }
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The paper's recipe, unless said otherwise (*Attention Is All You Need*, 5).

    Args:
        seed: of dropout, order of examples and everything random
        steps: optimizer steps at most; None: until the epochs, the budget or the patience end
        epochs: passes over the data at most
        budget_minutes: minutes at most, counted over all of the run's sessions
        accumulate: batches to a step; their gradients add up, and count by tokens
        schedule: "paper", "cosine" (ends at `steps`) or "constant"; all start with `warmup` steps
        rate: the paper's factor (1) for "paper", the highest learning rate for the others
        warmup: steps of linear rise
        rate_floor: share of the rate that "cosine" ends with
        beta1, beta2, epsilon: of Adam
        weight_decay: 0 is Adam, more is AdamW (on matrices, not on biases and norms)
        clip: largest norm of the whole gradient; None: not clipped
        precision: "float32"; "bfloat16": autocast; "auto": whichever is faster here, by timing a batch
        device: "auto" (a GPU where there is one) or "cpu"
        shard: with several processes, cut weights and optimizer over them (FSDP) instead of copying them
        validate_every: steps between validations; each is followed by a checkpoint; None: every epoch
        validate_at_end: validate once more where the run ends
        checkpoint_every: steps between further checkpoints; None: none
        keep: last checkpoints kept (the best one is kept besides); averages need them
        patience: validations without a better one before it stops; None: it doesn't
        log_every: steps between lines of metrics
        tensorboard: write events for TensorBoard too

    Raises:
        ValueError: whatever can't be.
    """

    seed: int = 0
    steps: int | None = 100_000
    epochs: int | None = None
    budget_minutes: float | None = None
    accumulate: int = 1
    schedule: ScheduleName = "paper"
    rate: float = 1.0
    warmup: int = 4000
    rate_floor: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip: float | None = None
    precision: Precision = "float32"
    device: str = "auto"
    shard: bool = False
    validate_every: int | None = 1000
    validate_at_end: bool = True
    checkpoint_every: int | None = None
    keep: int = 5
    patience: int | None = None
    log_every: int = 50
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name in (
            "steps",
            "epochs",
            "accumulate",
            "validate_every",
            "checkpoint_every",
            "keep",
            "patience",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if self.log_every < 1:
            raise ValueError(f"log_every is {self.log_every}: it must be at least 1")
        for name in ("budget_minutes", "clip", "epsilon", "rate"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} is {value}: it must be a positive number")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 0 and less than 1")
        if self.weight_decay < 0:
            raise ValueError(f"weight_decay is {self.weight_decay}: it must be at least 0")
        if self.precision not in get_args(Precision):
            raise ValueError(
                f"precision is {self.precision!r}: choose one of {', '.join(get_args(Precision))}"
            )
        if (
            self.steps is None
            and self.epochs is None
            and self.budget_minutes is None
            and self.patience is None
        ):
            raise ValueError("the run would never end: give steps, epochs, budget_minutes or patience")
        self.make_schedule(d_model=1)

    def make_schedule(self, d_model: int | None) -> Schedule:
        """The learning rate by step, for a model of this width ("paper" needs it).

        Raises:
            ValueError: see `headwise.training.schedule.make_schedule`.
        """
        return make_schedule(
            self.schedule,
            rate=self.rate,
            warmup=self.warmup,
            steps=self.steps,
            d_model=d_model,
            floor=self.rate_floor,
        )
