"""Learning rates. Each is a plain function of the step, so that a resumed run needs no state of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

ScheduleName = Literal["paper", "cosine", "constant"]


class Schedule(Protocol):
    """The learning rate of a step; the first step is 1."""

    def __call__(self, step: int) -> float: ...


@dataclass(frozen=True)
class PaperSchedule:
    """rate = factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)

    It rises linearly for `warmup` steps, then falls with the inverse square root of the step; the peak,
    at step = warmup, is factor / sqrt(d_model * warmup): 6.988e-4 for d_model 512 and 4000 steps.
    Source: *Attention Is All You Need*, 5.3, equation 3. (The factor is not in the paper, where it is 1.)

    Raises:
        ValueError: a width or warmup below 1, a factor that isn't positive.
    """

    d_model: int
    warmup: int = 4000
    factor: float = 1.0

    def __post_init__(self) -> None:
        _at_least_one("d_model", self.d_model)
        _at_least_one("warmup", self.warmup)
        _positive("factor", self.factor)

    def __call__(self, step: int) -> float:
        _at_least_one("step", step)
        scale = self.factor / math.sqrt(self.d_model)
        return scale * min(1 / math.sqrt(step), step / math.sqrt(self.warmup) ** 3)


@dataclass(frozen=True)
class CosineSchedule:
    """A linear rise to `peak` in `warmup` steps, then half a cosine down to `floor * peak` at step `steps`.

        rate = peak * step / warmup                                             up to step `warmup`
        rate = peak * (floor + (1 - floor) * (1 + cos(pi * t)) / 2),  t = (step - warmup) / (steps - warmup)

    Past `steps` it stays at the floor. Source: Loshchilov and Hutter 2017, *SGDR*, without restarts.

    Raises:
        ValueError: steps below 1, warmup outside [0, steps), a peak not above 0, floor outside [0, 1].
    """

    peak: float
    steps: int
    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        _positive("peak", self.peak)
        _at_least_one("steps", self.steps)
        if not 0 <= self.warmup < self.steps:
            raise ValueError(
                f"warmup is {self.warmup}: it must be at least 0 and less than the {self.steps} steps"
            )
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor}: it is a share of the peak, from 0 to 1")

    def __call__(self, step: int) -> float:
        _at_least_one("step", step)
        if step <= self.warmup:
            return self.peak * step / self.warmup
        done = min(1.0, (step - self.warmup) / (self.steps - self.warmup))
        return self.peak * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2)


@dataclass(frozen=True)
class ConstantSchedule:
    """The same rate at every step, after a linear rise in `warmup` steps.

    Raises:
        ValueError: a rate that isn't positive, warmup below 0.
    """

    rate: float
    warmup: int = 0

    def __post_init__(self) -> None:
        _positive("rate", self.rate)
        if self.warmup < 0:
            raise ValueError(f"warmup is {self.warmup}: it must be at least 0")

    def __call__(self, step: int) -> float:
        _at_least_one("step", step)
        return self.rate * min(1.0, step / self.warmup) if self.warmup else self.rate


def make_schedule(
    name: ScheduleName,
    *,
    rate: float,
    warmup: int,
    steps: int | None,
    d_model: int | None,
    floor: float = 0.0,
) -> Schedule:
    """A schedule by name. `rate` is the paper's factor for "paper", the highest rate for the others.

    Raises:
        ValueError: an unknown name; "paper" without d_model; "cosine" without steps; whatever the schedule
            itself refuses.
    """
    if name == "paper":
        if d_model is None:
            raise ValueError(
                'schedule "paper" needs the width of the model: give d_model, or choose "cosine"'
            )
        return PaperSchedule(d_model, warmup, rate)
    if name == "cosine":
        if steps is None:
            raise ValueError('schedule "cosine" ends at a step: give steps, or choose "paper" or "constant"')
        return CosineSchedule(rate, steps, warmup, floor)
    if name == "constant":
        return ConstantSchedule(rate, warmup)
    raise ValueError(f"there is no schedule {name!r}: choose one of {', '.join(get_args(ScheduleName))}")


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} is {value}: it must be at least 1")


def _positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}: it must be a positive number")
