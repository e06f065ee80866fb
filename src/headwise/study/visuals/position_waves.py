"""The paper's positional encoding: pairs of columns that turn, each at its own speed."""

from __future__ import annotations

import math
from typing import Any

import torch

from headwise.positions import sinusoidal
from headwise.positions.angles import frequencies
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import fixed

BASE = 10000.0
POSITIONS = 64  # rows of the picture
WIDTHS = (8, 16, 32, 64, 128, 512)
DEFAULTS: dict[str, Any] = {"width": "32", "pair": 3, "position": 10, "shift": 5}


def compute(inputs: Inputs) -> dict[str, Any]:
    """The chosen pair of columns at two positions, and the rotation that leads from one to the other."""
    width, position, shift = int(inputs["width"]), int(inputs["position"]), int(inputs["shift"])
    pair = min(int(inputs["pair"]), width // 2 - 1)
    speeds = frequencies(width // 2, width, BASE, device=torch.device("cpu"))
    speed = float(speeds[pair])
    places = torch.tensor([position, position + shift], dtype=torch.float64)
    here, there = sinusoidal(2, width, base=BASE, positions=places, dtype=torch.float64)
    turn = rotation(shift * speed)
    start = here[2 * pair : 2 * pair + 2]
    return {
        "pair": pair,
        "speed": speed,
        "wavelength": 2 * math.pi / speed,
        "angle": shift * speed,
        "rotation": turn.tolist(),
        "here": start.tolist(),
        "there": there[2 * pair : 2 * pair + 2].tolist(),
        "turned": (turn @ start).tolist(),
        "speeds": speeds.tolist(),
        "row": here.tolist(),
    }


def rotation(angle: float) -> torch.Tensor:
    """The matrix that takes (sin a, cos a) to (sin(a + angle), cos(a + angle)), [2, 2]."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)


def data(facts: Facts | None = None) -> VisualData:
    found = compute(DEFAULTS)
    width = int(DEFAULTS["width"])
    rows = []
    for pair, speed in enumerate(found["speeds"]):
        shown = DEFAULTS["shift"] * speed
        rows.append(
            (
                str(pair),
                f"{2 * pair}, {2 * pair + 1}",
                fixed(2 * math.pi / speed, 1),
                fixed(math.degrees(shown), 2),
            )
        )
    table = Table(
        f"d_model {width}: every pair of columns, and what a shift by {DEFAULTS['shift']} does to it",
        ("pair", "columns", "positions per turn", "turned by, in degrees"),
        tuple(rows),
    )
    words = (
        f"Pair {found['pair']} turns once in {fixed(found['wavelength'], 1)} positions. A shift by "
        f"{DEFAULTS['shift']} turns it by {fixed(math.degrees(found['angle']), 1)}°, from whichever position."
    )
    return VisualData(
        {"base": BASE, "positions": POSITIONS, "widths": list(WIDTHS), "defaults": DEFAULTS}, table, words
    )
