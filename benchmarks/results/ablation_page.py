"""The ablation on the page: a plot with error bars and two tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.document import put
from benchmarks.results.pictures import INK, figure
from headwise.models.table3 import TABLE_3

NAME = "ablation"
USUAL = 8
PAPER = {
    8 if row.name == "base" else int(row.changes["num_heads"]): row
    for row in TABLE_3
    if row.name == "base" or row.name.startswith("A ")
}
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 6: 2.45, 8: 2.31, 10: 2.23, 18: 2.10}
"""Student's t that 95 % lie within, by degrees of freedom."""
TASKS = {
    "multi30k": "translate Multi30k (BLEU)",
    "copy": "copy letters (% right)",
    "reverse": "reverse letters (% right)",
    "sort": "sort letters (% right)",
}
Values = Mapping[tuple[str, int, str], Sequence[float]]


def keep(facts: Mapping[str, Any], docs: Path) -> Path:
    """Keep the facts, draw the plot, and write the page's section."""
    kept = docs / "results" / f"{NAME}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for suffix in (".svg", ".png"):
        plot(values_of(facts), docs / "images" / "results" / f"{NAME}{suffix}")
    page = docs / "results.md"
    page.write_text(put(page.read_text(encoding="utf-8"), NAME, body(docs), page=page), encoding="utf-8")
    return page


def values_of(facts: Mapping[str, Any]) -> dict[tuple[str, int, str], list[float]]:
    """What was reached, of all seeds, by task, heads and positions."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for cell in sorted(facts["cells"], key=lambda cell: int(cell["seed"])):
        found.setdefault((cell["task"], cell["heads"], cell["positions"]), []).append(cell["value"])
    return found


def deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, bool | None]:
    """Mean of one minus mean of the other, its standard error, and whether it is one at 95 % by Welch's t
    with the fewest degrees of freedom that it can have; None where a single seed can't say."""
    apart = statistics.mean(one) - statistics.mean(other)
    least = min(len(one), len(other)) - 1
    if least < 1:
        return apart, 0.0, None
    error = (deviation(one) ** 2 / len(one) + deviation(other) ** 2 / len(other)) ** 0.5
    t = next((T_95[freedom] for freedom in sorted(T_95, reverse=True) if freedom <= least), T_95[1])
    return apart, error, abs(apart) > t * error


def by_heads(values: Values) -> dict[int, Sequence[float]]:
    """Runs on Multi30k with sinusoids, by heads."""
    return {
        heads: some
        for (task, heads, positions), some in sorted(values.items(), key=lambda item: item[0][1])
        if task == "multi30k" and positions == "sinusoidal"
    }


def by_task(values: Values) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
    """Runs with and without positions, by task, where there are both."""
    found = {}
    for task in TASKS:
        for name, heads, positions in values:
            if name == task and positions == "none" and (task, heads, "sinusoidal") in values:
                found[task] = (values[task, heads, "sinusoidal"], values[task, heads, "none"])
    return found


def plot(values: Values, path: Path) -> None:
    """BLEU by heads, and every task with and without positions: means, standard deviations, each seed."""
    heads, tasks = by_heads(values), by_task(values)
    with figure(path, 9.0, 3.4) as made:
        left, right = made.subplots(1, 2)
        places = range(len(heads))
        for place, some in zip(places, heads.values(), strict=True):
            left.plot([place] * len(some), some, "o", color="0.65", markersize=4, zorder=1)
        means = [statistics.mean(some) for some in heads.values()]
        bars = [deviation(some) for some in heads.values()]
        left.errorbar(places, means, bars, fmt="o-", color=INK, capsize=4, markersize=5, zorder=2)
        left.set_xticks(places, [str(count) for count in heads])
        left.set_xlabel("heads, at constant cost")
        left.set_ylabel("BLEU, Multi30k test")
        left.grid(alpha=0.3)
        for side, (label, colour) in enumerate((("sinusoids", INK), ("no positions", "#d1602f"))):
            for place, pair in enumerate(tasks.values()):
                some = pair[side]
                x = place + (side - 0.5) * 0.36
                right.bar(
                    x,
                    statistics.mean(some),
                    0.34,
                    yerr=deviation(some),
                    capsize=4,
                    color=colour,
                    label=label if not place else None,
                )
                right.plot([x] * len(some), some, "o", color="0.25", markersize=3)
        right.set_xticks(range(len(tasks)), [TASKS[task].replace(" (", "\n(") for task in tasks], fontsize=8)
        right.set_ylim(0, 105)
        right.grid(alpha=0.3, axis="y")
        if tasks:
            right.legend(fontsize=8)


def body(docs: Path) -> str:
    """The section, from what is kept."""
    path = docs / "results" / f"{NAME}.json"
    if not path.is_file():
        command = "python -m benchmarks.ablation --data multi30k/ --docs docs"
        return f"**Not run yet.** It is run by\n\n```sh\n{command}\n```"
    facts = json.loads(path.read_text(encoding="utf-8"))
    lines = ["```sh", facts["command"], "```", "", *_about(facts), ""]
    values = values_of(facts)
    lines += [f"![BLEU by heads, and tasks with and without positions](images/results/{NAME}.svg)", ""]
    lines += [*_heads(by_heads(values)), "", *_positions(by_task(values))]
    return "\n".join(lines).strip()


def _about(facts: Mapping[str, Any]) -> Iterator[str]:
    real = [cell for cell in facts["cells"] if cell["task"] == "multi30k"]
    machine = facts["machine"]
    seeds = len({cell["seed"] for cell in facts["cells"]})
    hours = sum(cell["seconds"] for cell in facts["cells"]) / 3600
    yield (
        f"{len(facts['cells'])} runs with {seeds} seed{'s' if seeds > 1 else ''}, {hours:.1f} hours of "
        f"training; {machine['processor']}, {machine['threads']} of {machine['cores']} cores, torch "
        f"{machine['torch']}. {facts['steps']:,} steps on Multi30k and {facts['toy_steps']:,} on a toy, "
        "whatever the model; the last checkpoint counts. What follows ± is the standard deviation over seeds."
    )
    if real:
        with_positions = {cell["parameters"] for cell in real}
        count = " or ".join(f"{one:,}" for one in sorted(with_positions))
        width = _d_model(real[0]["settings"])
        heads = sorted({cell["heads"] for cell in real})
        ends = [f"{width // h} with {h}" for h in dict.fromkeys((heads[0], heads[-1]))]
        yield (
            f"Every model of Multi30k has {count} parameters: heads are d_model / h wide, "
            f"{' to '.join(ends)} (the paper's base model: 512 / h)."
        )


def _d_model(settings: Sequence[str]) -> int:
    """The last one counts, as in a run."""
    return int([one for one in settings if one.startswith("d_model=")][-1].partition("=")[2])


def _heads(heads: Mapping[int, Sequence[float]]) -> Iterator[str]:
    if not heads:
        return
    yield "| heads | BLEU of each seed | mean | the paper's BLEU (table 3, rows A) |"
    yield "|--:|---|--:|--:|"
    for count, some in heads.items():
        paper = f"{PAPER[count].bleu:.1f}" if count in PAPER else ""
        each = ", ".join(f"{value:.1f}" for value in some)
        yield f"| {count} | {each} | {statistics.mean(some):.2f} ± {deviation(some):.2f} | {paper} |"
    yield ""
    yield "The paper's figures: English to German, newstest2013, models of 65 million parameters."
    if 1 in heads and USUAL in heads:
        apart, error, sure = difference(heads[USUAL], heads[1])
        there = PAPER[USUAL].bleu - PAPER[1].bleu
        seeds = f"{min(len(heads[1]), len(heads[USUAL]))} seeds"
        said = {
            None: "one seed can't say whether that is more than chance",
            False: f"{seeds} can't tell that from none (95 %, Welch's t)",
            True: f"{seeds} tell that from none (95 %, Welch's t)",
        }[sure]
        yield ""
        yield (
            f"**Does one head cost BLEU here too?** {USUAL} heads have {apart:+.2f} BLEU against one "
            f"(standard error {error:.2f}; {there:+.1f} in the paper): {said}."
        )


def _positions(tasks: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Iterator[str]:
    if not tasks:
        return
    yield (
        "**What attention alone can't do.** Without positions an encoder sees a bag of tokens: whatever "
        "order they come in, each token's vector is the same. (A decoder, which sees only what comes before, "
        "can still count.) Sorting needs no order of the input; copying and reversing need nothing else."
    )
    yield ""
    yield "| task | sinusoids | no positions |"
    yield "|---|--:|--:|"
    for task, pair in tasks.items():
        cells = (f"{statistics.mean(some):.1f} ± {deviation(some):.1f}" for some in pair)
        yield f"| {TASKS[task]} | {' | '.join(cells)} |"
