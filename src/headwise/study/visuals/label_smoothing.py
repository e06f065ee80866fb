"""Label smoothing: what is learned is less than certainty, and no loss goes below a floor."""

from __future__ import annotations

import math
from typing import Any

import torch

from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.facts import value
from headwise.study.visuals.wording import fixed, power
from headwise.training.loss import smoothing_floor, token_loss

VOCABULARIES = (2, 10, 100, 1000, 37_000)
DEFAULTS: dict[str, Any] = {"smoothing": 0.1, "vocabulary": "37000", "confidence": 0.98}
CONFIDENCES = (*(place / 100 for place in range(1, 100)), 0.992, 0.994, 0.996, 0.998, 0.999)


def loss(confidence: float, smoothing: float, classes: int) -> float:
    """Cross-entropy in nats of a model that gives the right token `confidence` and all others the same."""
    others = (1 - confidence) / (classes - 1)
    logits = torch.full((1, classes), math.log(others), dtype=torch.float64)
    logits[0, 0] = math.log(confidence)
    return float(token_loss(logits, torch.zeros(1, dtype=torch.int64), smoothing=smoothing).loss_sum)


def compute(inputs: Inputs) -> dict[str, Any]:
    smoothing, classes, sure = inputs["smoothing"], int(inputs["vocabulary"]), inputs["confidence"]
    other = smoothing / classes
    right = 1 - smoothing + other
    floor = smoothing_floor(smoothing, classes)
    return {
        "right": right,
        "other": other,
        "floor": floor,
        "floor_perplexity": math.exp(floor),
        "loss": loss(sure, smoothing, classes),
        "hard": loss(sure, 0.0, classes),
        "pull_right": sure - right,
        "pull_others": right - sure,
        "others": (1 - sure) / (classes - 1),
        "curve": [loss(one, smoothing, classes) for one in CONFIDENCES],
    }


def data(facts: Facts | None = None) -> VisualData:
    paper = {
        "smoothing": value(facts, "train.label_smoothing"),
        "vocabulary": value(facts, "data.en-de.vocabulary"),
    }
    found = compute(DEFAULTS)
    table = Table(
        f"Smoothing {fixed(DEFAULTS['smoothing'], 2)}, {int(DEFAULTS['vocabulary']):,} tokens",
        ("probability", "right token", "each other token"),
        (
            ("target", fixed(found["right"], 4), power(found["other"], 2)),
            ("the model", fixed(DEFAULTS["confidence"], 4), power(found["others"], 2)),
        ),
    )
    words = (
        f"A perfect model gives the right token {fixed(found['right'], 3)} and still has a loss of "
        f"{fixed(found['floor'], 3)} nats (perplexity {fixed(found['floor_perplexity'], 2)}). At "
        f"{fixed(DEFAULTS['confidence'], 3)} the loss is {fixed(found['loss'], 3)}: "
        f"{fixed(found['loss'] - found['floor'], 3)} more."
    )
    return VisualData({"confidences": list(CONFIDENCES), "paper": paper, "defaults": DEFAULTS}, table, words)
