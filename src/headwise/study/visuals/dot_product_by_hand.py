"""Scaled dot-product attention of one query, step by step, in numbers small enough for paper."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.attention import attention, problem
from headwise.kernels.blocks import block_scores
from headwise.masks import Causal
from headwise.observers import Weights
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import fixed, listing

# The vectors of "sat", and what it looks at, are those of the lesson.
TOKENS = ("the", "cat", "sat")
Q = ((0.0, 1.0, 0.0, 1.0), (1.0, 0.0, -1.0, 0.0), (1.0, 1.0, 1.0, 1.0))
K = ((1.0, -1.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 0.0, 0.0))
V = ((5.0, 5.0), (10.0, 0.0), (0.0, 10.0))
DEFAULTS: dict[str, Any] = {"query": "2", "scale": True, "causal": False}


def compute(inputs: Inputs) -> dict[str, Any]:
    """Every step for one query.

    Args:
        inputs: query (the place of a token), scale, causal; q, k, v where the reader changed them.
    """
    q, k, v = (
        torch.tensor(inputs.get(name, default), dtype=torch.float64)[None]
        for name, default in (("q", Q), ("k", K), ("v", V))
    )
    row = int(inputs["query"])
    mask = Causal() if inputs["causal"] else None
    scale = q.shape[-1] ** -0.5 if inputs["scale"] else 1.0
    scores = _scores(q, k, v, 1.0)[row]
    output, seen = attention(q, k, v, mask=mask, scale=scale, observe=[Weights()], kernel="reference")
    weights: Tensor = seen["weights"][0, row]
    visible = [not inputs["causal"] or key <= row for key in range(len(TOKENS))]
    scaled = scores * scale
    raised = [float(score.exp()) if seen_it else 0.0 for score, seen_it in zip(scaled, visible, strict=True)]
    return {
        "row": row,
        "divisor": 1 / scale,
        "scores": scores.tolist(),
        "scaled": scaled.tolist(),
        "visible": visible,
        "exponentials": raised,
        "total": sum(raised),
        "weights": weights.tolist(),
        "output": output[0, row].tolist(),
    }


def data(facts: Facts | None = None) -> VisualData:
    """The sentence and its vectors; the numbers of its first picture."""
    found, query = compute(DEFAULTS), TOKENS[int(DEFAULTS["query"])]
    columns = tuple(
        (token, *(fixed(found[name][key], places) for name, places in STEPS))
        for key, token in enumerate(TOKENS)
    )
    weights = [float(weight) for weight in found["weights"]]
    best = [f"“{TOKENS[key]}”" for key, weight in enumerate(weights) if weight > max(weights) - 1e-12]
    table = Table(
        f"From the query “{query}” to the weight of each key",
        ("key", "q · k", "÷ √d_k", "e to that power", "weight"),
        columns,
    )
    words = (
        f"“{query}” looks {'mostly' if len(best) == 1 else 'equally'} at {listing(best)}: "
        f"weight {fixed(max(weights), 3)}{'' if len(best) == 1 else ' each'}. "
        f"Its output is ({', '.join(fixed(one, 3) for one in found['output'])})."
    )
    given = {"tokens": list(TOKENS), "q": _lists(Q), "k": _lists(K), "v": _lists(V)}
    return VisualData({**given, "defaults": DEFAULTS}, table, words)


STEPS = (("scores", 2), ("scaled", 2), ("exponentials", 3), ("weights", 3))


def _scores(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Scores before any mask, [queries, keys]."""
    whole = problem(q[None], k[None], v[None], scale=scale)
    return block_scores(whole, slice(0, q.shape[-2]), slice(0, k.shape[-2]))[0, 0]


def _lists(matrix: tuple[tuple[float, ...], ...]) -> list[list[float]]:
    return [list(row) for row in matrix]
