"""The paper's learning-rate schedule: a straight rise, then a fall with one over the root of the step."""

from __future__ import annotations

import math
from typing import Any

from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.facts import value
from headwise.study.visuals.wording import count, power
from headwise.training.schedule import PaperSchedule

LAST = 100_000
DEFAULTS: dict[str, Any] = {"width": 512, "warmup": 4000, "reach": 80, "log": False}
SAMPLES = 160


def steps() -> list[int]:
    """Steps from 1 to LAST, denser where the rate changes faster."""
    return sorted({math.floor(LAST ** (place / SAMPLES) + 0.5) for place in range(SAMPLES + 1)})


def step_of(reach: float) -> int:
    """The step at a place of the slider: 0 is step 1, 100 is step 100,000, each 20 ten times as far."""
    return math.floor(10 ** (reach / 20) + 0.5)


def compute(inputs: Inputs) -> dict[str, Any]:
    schedule = PaperSchedule(int(inputs["width"]), int(inputs["warmup"]))
    step = step_of(inputs["reach"])
    return {
        "step": step,
        "rate": schedule(step),
        "peak": schedule(schedule.warmup),
        "curve": [schedule(one) for one in steps()],
        "rising": step < schedule.warmup,
    }


def data(facts: Facts | None = None) -> VisualData:
    base = {"width": value(facts, "model.base.d_model"), "warmup": value(facts, "schedule.warmup")}
    big = {"width": value(facts, "model.big.d_model"), "warmup": value(facts, "schedule.warmup")}
    last = {"base": value(facts, "train.base.steps"), "big": value(facts, "train.big.steps")}
    schedule = PaperSchedule(DEFAULTS["width"], DEFAULTS["warmup"])
    wanted = sorted({1, 100, 1000, schedule.warmup, 10_000, 30_000, LAST})
    table = Table(
        f"Learning rate for d_model {DEFAULTS['width']} and {count(DEFAULTS['warmup'])} warm-up steps",
        ("step", "learning rate"),
        tuple((count(step), power(schedule(step), 3)) for step in wanted),
    )
    peak = schedule(schedule.warmup)
    words = (
        f"The rate rises for {count(schedule.warmup)} steps to {power(peak, 2)}. At step "
        f"{count(step_of(DEFAULTS['reach']))} it is {power(schedule(step_of(DEFAULTS['reach'])), 2)}."
    )
    found = {"steps": steps(), "last": LAST, "base": base, "big": big, "trained": last, "marks": wanted}
    found["defaults"] = DEFAULTS
    return VisualData(found, table, words)
