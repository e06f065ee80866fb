"""Table 2 of the paper: what training cost, and the BLEU that came of it."""

from __future__ import annotations

from typing import Any

from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.facts import optional, value
from headwise.study.visuals.wording import fixed, power

MODELS = (
    ("bytenet", "ByteNet"),
    ("deep-att-posunk", "Deep-Att + PosUnk"),
    ("gnmt-rl", "GNMT + RL"),
    ("convs2s", "ConvS2S"),
    ("moe", "MoE"),
    ("deep-att-posunk-ensemble", "Deep-Att + PosUnk ensemble"),
    ("gnmt-rl-ensemble", "GNMT + RL ensemble"),
    ("convs2s-ensemble", "ConvS2S ensemble"),
    ("transformer-base", "Transformer (base)"),
    ("transformer-big", "Transformer (big)"),
)
LANGUAGES = {"en-de": "English to German", "en-fr": "English to French"}
DEFAULTS: dict[str, Any] = {"language": "en-de", "ensembles": True, "budget": 19.0}
DAY = 24 * 3600


def points(facts: Facts | None) -> list[dict[str, Any]]:
    """The rows of table 2; None where it prints nothing. The Transformers have one cost for both pairs."""
    rows = []
    for name, title in MODELS:
        both = optional(facts, f"table2.{name}.cost")
        costs = {one: both or optional(facts, f"table2.{name}.cost.{one}") for one in LANGUAGES}
        bleu = {one: optional(facts, f"table2.{name}.{one}") for one in LANGUAGES}
        ours, ensemble = name.startswith("transformer"), name.endswith("ensemble")
        rows.append({"name": title, "ours": ours, "ensemble": ensemble, "bleu": bleu, "cost": costs})
    return rows


def compute(inputs: Inputs, facts: Facts | None = None) -> dict[str, Any]:
    """The models of a language pair, and the best one that the budget pays for.

    Args:
        inputs: language, ensembles, budget (the power of ten of the most FLOPs that training may take).
    """
    language, budget = inputs["language"], 10 ** inputs["budget"]
    shown = [row for row in points(facts) if inputs["ensembles"] or not row["ensemble"]]
    known = [
        {"name": row["name"], "bleu": row["bleu"][language], "cost": row["cost"][language]}
        for row in shown
        if row["bleu"][language] is not None and row["cost"][language] is not None
    ]
    within = [row for row in known if row["cost"] <= budget]
    best = max(within, key=lambda row: float(row["bleu"])) if within else None
    return {
        "budget": budget,
        "days": budget / _speed(facts) / DAY,
        "points": known,
        "within": [row["name"] for row in within],
        "best": None if best is None else best["name"],
    }


def _speed(facts: Facts | None) -> float:
    """FLOPs per second of the paper's machine, by its own estimate."""
    return float(value(facts, "train.gpus") * value(facts, "gpu.p100.tflops") * 1e12)


def data(facts: Facts | None = None) -> VisualData:
    rows = points(facts)
    language = DEFAULTS["language"]
    found = compute(DEFAULTS, facts)
    table = Table(
        f"{LANGUAGES[language]}, newstest2014",
        ("model", "BLEU", "training cost, FLOPs"),
        tuple(
            (
                row["name"],
                "" if row["bleu"][language] is None else fixed(row["bleu"][language], 2),
                "" if row["cost"][language] is None else power(row["cost"][language], 1),
            )
            for row in rows
        ),
    )
    bleu = {row["name"]: row["bleu"][language] for row in rows}
    words = (
        f"{power(found['budget'], 1)} FLOPs are {fixed(found['days'], 1)} days of the paper’s machine by its "
        f"own estimate. The best model trained with no more is {found['best']}: BLEU "
        f"{fixed(bleu[found['best']], 2)}."
    )
    given = {"rows": rows, "languages": LANGUAGES, "speed": _speed(facts), "defaults": DEFAULTS}
    return VisualData(given, table, words)
