"""How far a figure may be off, since the test set is only a sample."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

RowT = TypeVar("RowT")


def bootstrap_interval(
    rows: Sequence[RowT],
    metric: Callable[[Sequence[RowT]], float],
    *,
    share: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Between which values `share` of the metrics of redrawn test sets lie (Efron 1979; percentiles).

    Each of `draws` test sets takes as many rows as there are, with replacement.

    Raises:
        ValueError: no rows, no draws, a share outside (0, 1).
    """
    if not rows or draws < 1 or not 0 < share < 1:
        raise ValueError(
            f"{len(rows)} rows, {draws} draws, share {share}: an interval needs rows, draws and a share "
            "between 0 and 1"
        )
    chance = random.Random(f"headwise bootstrap {seed}")
    found = sorted(metric(chance.choices(rows, k=len(rows))) for _ in range(draws))
    outside = (1 - share) / 2
    return found[int(outside * (draws - 1))], found[round((1 - outside) * (draws - 1))]
