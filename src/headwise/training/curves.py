"""Learning curves of runs, drawn from their metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.training.extras import need
from headwise.training.metrics import read_metrics

WIDTH, HEIGHT = 5.0, 3.2  # inches of a panel
COLUMNS = 2
NOT_DRAWN = {"step", "split", "seconds", "epoch", "count", "per_second"}
NAMES = {"rate": "learning rate", "norm": "norm of the gradient"}
Series = list[tuple[int, float]]


def panels(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Series]]:
    """What is drawn: figure -> split -> (step, value). One of both splits shares a panel; loss is first."""
    found: dict[str, dict[str, Series]] = {}
    for line in lines:
        for name, value in line.items():
            if name not in NOT_DRAWN and isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault(name, {}).setdefault(line["split"], []).append((line["step"], float(value)))
    order = sorted(found, key=lambda name: (name != "loss", "valid" not in found[name], name))
    return {name: found[name] for name in order}


def draw_curves(runs: Sequence[Path], out: Path) -> list[Path]:
    """Draw the curves of one run, or of several for comparison, as PNG and SVG.

    Args:
        runs: folders
        out: the files' path; its suffix is replaced by .png and .svg

    Returns:
        The two files.

    Raises:
        ValueError: no run; one without metrics.jsonl, or with nothing in it yet, or a damaged one.
        MissingExtra: matplotlib isn't installed.
        OSError: the files can't be written.
    """
    if not runs:
        raise ValueError("there are no runs to draw: name at least one folder")
    drawn = {run: panels(read_metrics(run)) for run in runs}
    for run, found in drawn.items():
        if not found:
            raise ValueError(f"{run} has no figures yet: its metrics.jsonl is empty")
    names = list(dict.fromkeys(name for found in drawn.values() for name in found))
    matplotlib = need("matplotlib", "curves")
    figure_module = need("matplotlib.figure", "curves")
    rows = -(-len(names) // COLUMNS)
    with matplotlib.rc_context({"svg.hashsalt": "headwise", "font.size": 9}):
        figure = figure_module.Figure(figsize=(COLUMNS * WIDTH, rows * HEIGHT), layout="constrained")
        for place, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, COLUMNS, place)
            _draw(axes, name, {run: found.get(name, {}) for run, found in drawn.items()})
        files = [out.with_suffix(".png"), out.with_suffix(".svg")]
        figure.savefig(files[0], dpi=150)
        figure.savefig(files[1], metadata={"Date": None})  # the same curves give the same file
    return files


def _draw(axes: Any, name: str, of_runs: Mapping[Path, Mapping[str, Series]]) -> None:
    """One panel: validation with marks, training without."""
    several = len(of_runs) > 1
    for number, (run, splits) in enumerate(of_runs.items()):
        for split, series in splits.items():
            valid = split == "valid"
            axes.plot(
                *zip(*series, strict=True),
                color=f"C{number if several else int(valid)}",
                linestyle="--" if valid and several else "-",
                marker="o" if valid else None,
                markersize=3,
                linewidth=1.5 if valid else 1.0,
                label=" ".join([run.name] * several + ["validation" if valid else "training"]),
            )
    axes.set_title(NAMES.get(name, name))
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
