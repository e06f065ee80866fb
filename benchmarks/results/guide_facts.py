"""The study guide's facts about results, taken from what is kept of the runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.results.page import DOCS, evaluation_command, facts_of, main_evaluation
from benchmarks.results.sections import BY_NAME, shown

GUIDE = Path(__file__).parents[2] / "guides" / "attention-is-all-you-need" / "facts.toml"
COUNTS = ("pairs", "images", "recordings", "questions")
"""What the examples to learn from may be called; "singles" are those of the test."""
BASELINES = {
    "copied": "source copied",
    "nearest": "nearest neighbour",
    "commonest": "commonest class",
    "first": "first sentence",
    "frequent": "most frequent word",
}


def value_of(name: str, facts: Mapping[str, Any]) -> int | float | str:
    """What a fact called `results.SECTION.NAME` says: a count, "parameters", "minutes", or a figure.

    A figure is NAME of the checkpoint that the page shows in bold; NAME.interval are its limits, NAME.best
    and NAME.average it of that checkpoint; a word of `BASELINES` before or behind NAME, or instead of it,
    is the baseline's.

    Raises:
        KeyError: no such figure.
    """
    if name in COUNTS:
        return int(facts["data"]["train"])
    if name == "singles":
        return int(facts["data"]["test"])
    if name == "parameters":
        return int(facts["parameters"])
    if name == "minutes":
        return round(facts["seconds"] / 60)
    parts, found = name.split("."), main_evaluation(facts, _checkpoint(name, facts))
    baseline = next((BASELINES[part] for part in parts if part in BASELINES), None)
    figures = found["figures"] if baseline is None else found["baselines"][baseline]
    figure = next((part for part in parts if part in figures), None) or next(iter(figures))
    if "interval" in parts:
        return f"{_bare(figure, figures[f'{figure}_low'])} to {_bare(figure, figures[f'{figure}_high'])}"
    if figure not in parts and baseline is None:
        raise KeyError(f"{name}: the run's figures are {', '.join(figures)}")
    return float(_bare(figure, figures[figure]))


def _bare(figure: str, value: float) -> str:
    """As the page shows it, without its unit."""
    return shown(figure, value).removesuffix("%").strip()


def command_of(name: str, facts: Mapping[str, Any]) -> str:
    """What printed it: the training, or the evaluation of a checkpoint."""
    if name in (*COUNTS, "parameters", "minutes"):
        return str(facts["command"])
    return evaluation_command(facts, _checkpoint(name, facts))


def _checkpoint(name: str, facts: Mapping[str, Any]) -> str:
    """Whose figure it is: the one that the name says, else the one that the page shows in bold."""
    return next((part for part in name.split(".") if part in ("best", "average")), facts["checkpoint"])


def lines_of(text: str, docs: Path = DOCS) -> Iterator[str]:
    """facts.toml, line by line, with values and commands of all `results.*` as the runs say now."""
    known: dict[str, dict[str, Any]] = {}
    name, facts = "", None
    for line in text.splitlines():
        if line.startswith("["):
            table = re.fullmatch(r'\["?results\.([a-z0-9]+)\.([a-z0-9_.]+)"?\]', line)
            facts = None
            if table is not None:
                section, name = table[1], table[2]
                facts = known.setdefault(section, facts_of(BY_NAME[section], docs) or {})
        if facts and line.startswith("value = "):
            line = f"value = {json.dumps(value_of(name, facts))}"
        if facts and line.startswith("command = "):
            line = f"command = {json.dumps(command_of(name, facts))}"
        yield line


def update(file: Path = GUIDE, docs: Path = DOCS) -> Path:
    """Write facts.toml again."""
    file.write_text("".join(f"{line}\n" for line in lines_of(file.read_text(encoding="utf-8"), docs)))
    return file
