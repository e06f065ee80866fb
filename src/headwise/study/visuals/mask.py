"""Masks: which query may see which key."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.attention import attention
from headwise.masks import Causal, Frame, KeyLengths, Mask, Prefix, Window, all_of
from headwise.observers import Weights
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import count, fixed, percent

SENTENCE = "so the keeper lit the lamp again and went up to see the boats come home"
WORDS = SENTENCE.split()
MOST = len(WORDS)
DEFAULTS: dict[str, Any] = {
    "queries": 10,
    "keys": 10,
    "causal": True,
    "prefix": 0,
    "window": False,
    "before": 3,
    "after": 0,
    "lengths": False,
    "length": 8,
    "align": "end",
}


def mask_of(inputs: Inputs) -> Mask | None:
    """(causal or prefix) and window and key lengths, of those that are chosen; None where none is."""
    causal: Mask | None = Causal() if inputs["causal"] else None
    if causal is not None and inputs["prefix"]:
        causal = causal | Prefix(int(inputs["prefix"]))
    window = Window(int(inputs["before"]), int(inputs["after"])) if inputs["window"] else None
    length = KeyLengths(min(int(inputs["length"]), int(inputs["keys"]))) if inputs["lengths"] else None
    return all_of(causal, window, length)


def compute(inputs: Inputs) -> dict[str, Any]:
    """Who sees whom, a row for each query and a column for each key; and the weights if all scores are
    alike."""
    queries, keys = int(inputs["queries"]), int(inputs["keys"])
    frame = Frame.of((), 1, queries, keys, align=inputs["align"])
    mask = mask_of(inputs)
    if mask is not None:
        mask.check(frame)
    q, k, v = (torch.zeros(1, length, 1, dtype=torch.float64) for length in (queries, keys, keys))
    _, found = attention(q, k, v, mask=mask, align=inputs["align"], observe=[Weights()], kernel="reference")
    weights: Tensor = found["weights"]
    return {
        "expression": repr(mask),
        "positions": frame.q_pos.tolist(),
        "seen": [[True] * keys for _ in range(queries)] if mask is None else mask.dense(frame)[0].tolist(),
        "count": queries * keys if mask is None else int(mask.count(frame)),
        "weights": [max(row) for row in weights[0].tolist()],
    }


def data(facts: Facts | None = None) -> VisualData:
    found = compute(DEFAULTS)
    pairs = DEFAULTS["queries"] * DEFAULTS["keys"]
    table = Table(
        f"mask = {found['expression']}",
        ("query", "keys seen", "weight of each, all scores alike", "which"),
        tuple(
            (name_of(place), count(sum(row)), fixed(weight, 3), spans(row))
            for place, row, weight in zip(found["positions"], found["seen"], found["weights"], strict=True)
        ),
    )
    words = f"{count(found['count'])} of {count(pairs)} pairs may attend ({percent(found['count'] / pairs)})."
    return VisualData({"words": WORDS, "most": MOST, "defaults": DEFAULTS}, table, words)


def name_of(place: int) -> str:
    """The word at a position, with its number; a position before the first key has no word."""
    return f"{WORDS[place]} ({place})" if place >= 0 else f"({fixed(place, 0)})"


def spans(row: list[bool]) -> str:
    """The keys that are seen: "0 to 3, 7", or "none"."""
    parts: list[str] = []
    start: int | None = None
    for place, seen in enumerate([*row, False]):
        if seen and start is None:
            start = place
        elif not seen and start is not None:
            parts.append(str(start) if place - start == 1 else f"{start} to {place - 1}")
            start = None
    return ", ".join(parts) or "none"
