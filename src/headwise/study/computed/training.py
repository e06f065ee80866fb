"""Rates, times, costs and losses of the training."""

from __future__ import annotations

import math

from headwise.models.decoding import length_penalty as _length_penalty
from headwise.training.loss import smoothing_floor as _smoothing_floor
from headwise.training.schedule import PaperSchedule


def learning_rate(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The paper's learning rate at a step (equation 3)."""
    return PaperSchedule(d_model, warmup, factor)(step)


def hours_of_steps(steps: int, seconds: float) -> float:
    """Hours that so many steps of so many seconds take."""
    return steps * seconds / 3600


def days_of_steps(steps: int, seconds: float) -> float:
    """Days that so many steps of so many seconds take."""
    return hours_of_steps(steps, seconds) / 24


def training_cost(gpus: int, tflops: float, seconds: float) -> float:
    """Floating-point operations of a training, estimated as the paper does: GPUs, times what one sustains,
    times the time."""
    return gpus * tflops * 1e12 * seconds


def smoothing_floor(smoothing: float, classes: int) -> float:
    """The least cross-entropy in nats that any model can reach against smoothed targets."""
    return _smoothing_floor(smoothing, classes)


def smoothing_floor_perplexity(smoothing: float, classes: int) -> float:
    """That floor as a perplexity."""
    return math.exp(_smoothing_floor(smoothing, classes))


def smoothed_target(smoothing: float, classes: int) -> float:
    """The probability that a smoothed target gives the right class."""
    return 1 - smoothing + smoothing / classes


def length_penalty(length: int, alpha: float) -> float:
    """What a beam search divides the log-probability of so long a hypothesis by."""
    return _length_penalty(length, alpha)
