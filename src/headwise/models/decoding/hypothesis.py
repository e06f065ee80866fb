"""One decoded output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One output.

    Attributes:
        tokens: without the token that begins it, and without the one that ends it.
        log_probability: of all its tokens, the end among them if it came.
        score: what it was ranked by; in beam search log_probability / length_penalty, else log_probability.
        finished: whether it ended by itself, rather than at the length limit.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool
