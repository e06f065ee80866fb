"""Splitting d_model into heads and joining them again: shapes, parameters, operations."""

from __future__ import annotations

from typing import Any

import torch

from headwise.multihead import MultiHeadAttention
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.facts import value
from headwise.study.visuals.wording import count, fixed
from headwise.trace import SOFTMAX_FLOPS, Trace, trace

DEFAULTS: dict[str, Any] = {"n": 10, "d_model": 512, "heads": 8, "free": False, "width": 64}


def run(n: int, d_model: int, heads: int, width: int) -> Trace:
    """A real run of the layer, without memory for its weights."""
    with torch.device("meta"):
        layer = MultiHeadAttention(d_model, heads, d_k=width, d_v=width)
        return trace(layer, torch.empty(1, n, d_model))


def compute(inputs: Inputs) -> dict[str, Any]:
    """Shapes, parameters and operations of each step, without the batch dimension."""
    n, d_model, heads = int(inputs["n"]), int(inputs["d_model"]), int(inputs["heads"])
    width = int(inputs["width"]) if inputs["free"] else max(1, d_model // heads)
    found = run(n, d_model, heads, width)
    steps = [
        {
            "name": step.name,
            "shape": list(step.shape[1:]),
            "parameters": step.parameters,
            "flops": step.flops,
        }
        for step in found.rows
    ]
    softmax = found["weights"].flops
    total = sum(step.flops for step in found.rows)
    return {
        "width": width,
        "steps": steps,
        "parameters": sum(step.parameters for step in found.rows),
        "flops": total,
        "products": total - softmax,
        "softmax": softmax,
    }


def data(facts: Facts | None = None) -> VisualData:
    d_model, heads = value(facts, "model.base.d_model"), value(facts, "model.base.heads")
    found = compute(DEFAULTS)
    table = Table(
        f"One layer: {DEFAULTS['n']} tokens, d_model {DEFAULTS['d_model']}, {DEFAULTS['heads']} heads of "
        f"width {found['width']}",
        ("step", "shape", "parameters", "operations"),
        tuple(
            (
                step["name"],
                " × ".join(str(size) for size in step["shape"]),
                count(step["parameters"]),
                count(step["flops"]),
            )
            for step in found["steps"]
        ),
    )
    words = (
        f"{DEFAULTS['heads']} heads of width {found['width']}: {count(found['parameters'])} parameters, "
        f"{fixed(found['flops'] / 1e6, 1)} million operations, of which softmax takes "
        f"{fixed(found['softmax'] / 1e6, 3)} million."
    )
    paper = {"d_model": d_model, "heads": heads}
    return VisualData({"softmax": SOFTMAX_FLOPS, "paper": paper, "defaults": DEFAULTS}, table, words)
