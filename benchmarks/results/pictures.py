"""Pictures of the page, as SVG."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.training.curves import draw_curves
from headwise.training.extras import need

INK = "#1f4e79"


@contextmanager
def figure(path: Path, width: float, height: float) -> Any:
    """A figure of so many inches that is saved when the block ends; equal pictures are equal files."""
    matplotlib = need("matplotlib", "pictures")
    made = need("matplotlib.figure", "pictures").Figure(figsize=(width, height), layout="constrained")
    yield made
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "headwise", "svg.fonttype": "none"}):
        made.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=130)


def curves(run: Path, path: Path) -> None:
    """The learning curves, as `headwise curves` draws them."""
    with tempfile.TemporaryDirectory() as folder:
        files = draw_curves([run], Path(folder) / "curves")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(next(file for file in files if file.suffix == ".svg"), path)


WIDEST = 24.0
"""Inches of all panels of a picture side by side."""


def alignment(
    path: Path, panels: Sequence[tuple[str, Tensor]], written: Sequence[str], read: Sequence[str]
) -> None:
    """Weights [written, read] of some heads, side by side where there is room; darker is more.

    Args:
        read: what stands at each key; empty: the keys are frames, among which weight is spread so thin that
            each picture is drawn by its own largest
    """
    tall = 0.9 + 0.2 * len(written)
    wide = 0.6 + (0.2 * len(read) if read else 2.8)
    across = max(1, min(len(panels), int(WIDEST // wide)))
    down = -(-len(panels) // across)
    with figure(path, 0.9 + across * wide, down * (tall + (0.6 if read else 0.2))) as made:
        for place, (title, weights) in enumerate(panels, 1):
            axes = made.add_subplot(down, across, place)
            axes.imshow(
                weights.numpy(),
                cmap="Blues",
                vmin=0,
                vmax=1 if read else None,
                aspect="equal" if read else "auto",
            )
            axes.set_title(title, fontsize=9)
            if read:
                axes.set_xticks(range(len(read)), [_short(one) for one in read], rotation=90, fontsize=8)
            else:
                axes.set_xlabel("frame of the encoder", fontsize=8)
                axes.tick_params(labelsize=8)
            labels = [_short(one) for one in written] if place % across == 1 or across == 1 else []
            axes.set_yticks(range(len(labels)), labels, fontsize=8)
            axes.tick_params(length=0)


def _short(text: str) -> str:
    return text.strip().replace("$", r"\$") or "␣"


def attention_over_images(
    path: Path, images: Sequence[Tensor], rows: Sequence[tuple[str, Sequence[Tensor]]], titles: Sequence[str]
) -> None:
    """Images [channels, height, width] in a line, and under them again with attention [rows, columns] of
    patches drawn over each; redder is more, each picture by its own largest.
    """
    with figure(path, 1.5 * len(images) + 0.9, 1.55 * (len(rows) + 1) + 0.3) as made:
        for column, image in enumerate(images):
            pixels = image.permute(1, 2, 0).numpy()
            height, width = pixels.shape[:2]
            for row in range(len(rows) + 1):
                axes = made.add_subplot(len(rows) + 1, len(images), row * len(images) + column + 1)
                axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1, extent=(0, width, height, 0))
                axes.set_xticks([])
                axes.set_yticks([])
                if not row:
                    axes.set_title(titles[column], fontsize=8)
                    continue
                name, maps = rows[row - 1]
                share = maps[column] / maps[column].max().clamp(min=1e-9)
                colour = torch.zeros(*share.shape, 4)
                colour[..., 0] = 1.0
                colour[..., 1] = 0.25
                colour[..., 3] = 0.75 * share
                axes.imshow(colour.numpy(), extent=(0, width, height, 0), interpolation="nearest")
                if not column:
                    axes.set_ylabel(name, fontsize=8)
