"""metrics.jsonl: one line of JSON for each report of a run; TensorBoard besides, by option."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.training.extras import need
from headwise.training.files import replace_file, to_json_line

NAME = "metrics.jsonl"


class Metrics:
    """Writes the lines of a run. Each has "step", "split" ("train" or "valid") and figures.

    Args:
        run: the run's folder
        lines: how many the file had when the checkpoint was written that the run continues from; later ones
            will be computed again and are dropped, and so is a last line that was cut off
        step: of that checkpoint

    Raises:
        MissingExtra: tensorboard is asked for and isn't installed.
    """

    def __init__(self, run: Path, lines: int = 0, step: int = 0, *, tensorboard: bool = False) -> None:
        self.path = run / NAME
        kept = read_metrics(run)[:lines] if self.path.exists() else []
        self.lines = len(kept)
        replace_file(self.path, "".join(map(to_json_line, kept)).encode())
        self._file = self.path.open("a", encoding="utf-8")
        self._board: Any = None
        if tensorboard:
            need("tensorboard", "tensorboard=true", "'headwise[tensorboard]'")
            module = need("torch.utils.tensorboard", "tensorboard=true", "'headwise[tensorboard]'")
            self._board = module.SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)

    def write(self, step: int, split: str, figures: Mapping[str, Any]) -> None:
        """Add a line."""
        self._file.write(to_json_line({"step": step, "split": split, **figures}))
        self._file.flush()
        self.lines += 1
        if self._board is not None:
            for name, value in figures.items():
                if isinstance(value, (int, float)):
                    self._board.add_scalar(f"{split}/{name}", value, step)

    def sync(self) -> int:
        """Wait until the disk has all lines; their number."""
        os.fsync(self._file.fileno())
        return self.lines

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, without a last line that a killed process left unfinished.

    Raises:
        ValueError: there is no such file, or another line is no JSON; it is named.
    """
    path = run / NAME
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ValueError(f"{run} has no {NAME}: is it the folder of a run?") from None
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            fine = isinstance(line, dict) and isinstance(line["step"], int) and isinstance(line["split"], str)
        except (ValueError, KeyError):
            fine = False
        if fine:
            lines.append(line)
        elif number < len(texts):
            raise ValueError(f"{path}, line {number} is damaged: {text[:60]!r}")
    return lines
