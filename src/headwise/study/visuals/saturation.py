"""Why scores are scaled: without it their variance grows with d_k, and softmax has no gradient left."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from headwise.kernels.reference import softmax
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import fixed

SEED = 5
MOST = 10  # d_k up to 2^10
KEYS = 8
QUERIES = 512  # rows of scores behind each average
DEFAULTS: dict[str, Any] = {"exponent": 6, "row": 2}


def vectors() -> tuple[Tensor, Tensor]:
    """Queries [QUERIES, 1024] and for each its KEYS keys [QUERIES, KEYS, 1024]: independent numbers of mean
    0 and variance 1, as the paper's footnote 1 assumes. The first d_k of them make the vectors of width d_k.
    """
    generator = torch.Generator().manual_seed(SEED)
    width = 2**MOST
    return (
        torch.randn(QUERIES, width, generator=generator, dtype=torch.float64),
        torch.randn(QUERIES, KEYS, width, generator=generator, dtype=torch.float64),
    )


@cache
def all_scores() -> Tensor:
    """q . k of every query and key for d_k = 1, 2, 4, ..., 1024: [widths, QUERIES, KEYS]."""
    q, k = vectors()
    products = (k * q[:, None]).cumsum(-1)
    return torch.stack([products[..., 2**exponent - 1] for exponent in range(MOST + 1)])


def jacobian_norm(weights: Tensor) -> Tensor:
    """How much the weights of a row answer to its scores: the root of the sum of squares of

        d P_i / d s_j = P_i ([i = j] - P_j)

    Shapes: weights [..., keys] -> [...].
    """
    squares = weights.square()
    total = squares.sum(-1)
    return (total - 2 * (weights * squares).sum(-1) + total.square()).clamp(min=0).sqrt()


def row_facts(scores: Tensor) -> dict[str, Any]:
    """Weights of one row of scores [keys], with how even they are and how much gradient is left."""
    weights = softmax(scores[None, None, None])[0][0, 0, 0]
    return {
        "weights": weights.tolist(),
        "largest": float(weights.max()),
        "gradient": float(jacobian_norm(weights)),
    }


def compute(inputs: Inputs) -> dict[str, Any]:
    """The chosen row of scores with and without the scale."""
    width = 2 ** int(inputs["exponent"])
    scores = torch.tensor(_rows()[int(inputs["exponent"])][int(inputs["row"]) - 1], dtype=torch.float64)
    return {
        "d_k": width,
        "plain": row_facts(scores),
        "scaled": row_facts(scores / math.sqrt(width)),
    }


ROWS = 6  # rows of scores that the reader can look at


@cache
def _rows() -> list[list[list[float]]]:
    """The first rows of scores to four decimals, as the browser has them: [widths][ROWS][KEYS]."""
    rows: list[list[list[float]]] = all_scores()[:, :ROWS].tolist()
    return [[[round(score, 4) for score in row] for row in block] for block in rows]


def averages() -> list[dict[str, Any]]:
    """For each d_k: measured variance of q . k, and averages over all rows, with and without the scale."""
    found = []
    for exponent, scores in enumerate(all_scores()):
        width = 2**exponent
        line: dict[str, Any] = {"d_k": width, "variance": float(scores.square().mean())}
        for name, values in (("plain", scores), ("scaled", scores / math.sqrt(width))):
            weights = softmax(values[None, None])[0][0, 0]
            line[name] = {
                "largest": float(weights.max(-1).values.mean()),
                "gradient": float(jacobian_norm(weights).mean()),
            }
        found.append(line)
    return found


def data(facts: Facts | None = None) -> VisualData:
    lines = averages()
    table = Table(
        f"Averages over {QUERIES} random queries with {KEYS} keys each",
        (
            "d_k",
            "variance of q · k",
            "after ÷ √d_k",
            "largest weight, not scaled",
            "scaled",
            "gradient, not scaled",
            "scaled",
        ),
        tuple(
            (
                str(line["d_k"]),
                fixed(line["variance"], 1),
                fixed(line["variance"] / line["d_k"], 2),
                fixed(line["plain"]["largest"], 3),
                fixed(line["scaled"]["largest"], 3),
                fixed(line["plain"]["gradient"], 3),
                fixed(line["scaled"]["gradient"], 3),
            )
            for line in lines
        ),
    )
    now = lines[DEFAULTS["exponent"]]
    words = (
        f"With d_k = {now['d_k']}, q · k has variance {fixed(now['variance'], 1)}. Not scaled, the largest "
        f"of {KEYS} weights is {fixed(now['plain']['largest'], 2)} on average, and the gradient is "
        f"{fixed(now['plain']['gradient'], 3)}; divided by √d_k, {fixed(now['scaled']['largest'], 2)} and "
        f"{fixed(now['scaled']['gradient'], 3)}."
    )
    given = {"keys": KEYS, "queries": QUERIES, "rows": _rows(), "averages": lines, "defaults": DEFAULTS}
    return VisualData(given, table, words)
