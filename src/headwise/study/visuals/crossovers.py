"""Table 1 of the paper: what four kinds of layer cost, and where one overtakes another."""

from __future__ import annotations

import math
from typing import Any

from headwise.study.computed import table1
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import count, fixed, size

LAYERS = ("self-attention", "recurrent", "convolutional", "restricted")
NAMES = {
    "self-attention": "Self-attention",
    "recurrent": "Recurrent",
    "convolutional": "Convolutional",
    "restricted": "Self-attention, restricted",
}
COSTS = ("operations", "sequential", "path")
DEFAULTS: dict[str, Any] = {"cost": "operations", "reach": 50, "width": "512", "kernel": 3, "near": 64}
LONGEST = 100_000
SAMPLES = 60


def lengths() -> list[int]:
    """Lengths of sequences from 1 to LONGEST, evenly spread on a log axis."""
    return sorted({math.floor(LONGEST ** (place / SAMPLES) + 0.5) for place in range(SAMPLES + 1)})


def length_of(reach: float) -> int:
    """The length at a place of the slider: 0 is 1, 100 is 100,000, each 20 ten times as long."""
    return math.floor(10 ** (reach / 20) + 0.5)


def cost(layer: str, what: str, n: int, d: int, k: int, r: int) -> float | None:
    """A cell of table 1, without the constants that O() leaves out; a path counts layers.

    A neighbourhood is never more than all n positions. None: no stack of such layers connects all positions
    (kernels of width 1).
    """
    near = min(r, n)
    if what == "operations":
        products = {
            "self-attention": table1.self_attention_products(n, d),
            "recurrent": table1.recurrent_products(n, d),
            "convolutional": table1.convolution_products(n, d, k),
            "restricted": table1.restricted_products(n, d, near),
        }
        return float(products[layer])
    if what == "sequential" or layer == "self-attention":
        return float(n) if layer == "recurrent" else 1.0
    if layer == "recurrent":
        return float(n)
    if layer == "restricted":
        return float(table1.restricted_path(n, near))
    return None if k == 1 else float(max(1, table1.dilated_layers(n, k)))


def compute(inputs: Inputs) -> dict[str, Any]:
    what, n = inputs["cost"], length_of(inputs["reach"])
    d, k, r = int(inputs["width"]), int(inputs["kernel"]), int(inputs["near"])
    return {
        "n": n,
        "here": [cost(layer, what, n, d, k, r) for layer in LAYERS],
        "lines": [[cost(layer, what, one, d, k, r) for one in lengths()] for layer in LAYERS],
        "crossings": [
            {"layers": ["self-attention", "recurrent"], "n": table1.crossover_length(d)},
            {"layers": ["self-attention", "convolutional"], "n": k * d},
        ]
        if what == "operations"
        else [],
    }


def data(facts: Facts | None = None) -> VisualData:
    n, d = length_of(DEFAULTS["reach"]), int(DEFAULTS["width"])
    k, r = DEFAULTS["kernel"], DEFAULTS["near"]
    table = Table(
        f"n = {count(n)}, d = {d}, k = {k}, r = {r}",
        ("layer", "operations", "sequential steps", "longest path"),
        tuple((NAMES[layer], *(shown(cost(layer, what, n, d, k, r)) for what in COSTS)) for layer in LAYERS),
    )
    own, recurrent = cost(LAYERS[0], "operations", n, d, k, r), cost(LAYERS[1], "operations", n, d, k, r)
    words = comparison(n, d, own or 0.0, recurrent or 0.0)
    found = {"layers": list(LAYERS), "names": NAMES, "costs": list(COSTS), "lengths": lengths()}
    found["defaults"] = DEFAULTS
    return VisualData(found, table, words)


def shown(value: float | None) -> str:
    """A cost in words."""
    return "never" if value is None else size(value)


def comparison(n: int, d: int, own: float, recurrent: float) -> str:
    """Which of the two the paper compares first is cheaper here, and where they meet."""
    if own == recurrent:
        return f"At n = {count(n)} a self-attention and a recurrent layer cost the same: n = d."
    ratio = recurrent / own
    names = ("self-attention", "a recurrent layer")
    cheaper, dearer = names if ratio > 1 else names[::-1]
    return (
        f"At n = {count(n)}, {cheaper} is {fixed(max(ratio, 1 / ratio), 1)} times cheaper than {dearer}; the "
        f"two cost the same at n = d = {count(d)}."
    )
