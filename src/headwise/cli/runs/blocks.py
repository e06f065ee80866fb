"""Numbers as shaded characters, for pictures in a terminal."""

from __future__ import annotations

import torch
from torch import Tensor

SHADES = " ░▒▓█"
PLAIN = " .:*#"
TALL = 16
"""Lines of a picture at most."""


def shaded(values: Tensor, *, unicode: bool, wide: int = 2) -> list[str]:
    """Numbers from 0 to 1, [rows, columns], as lines; each is `wide` characters of one of five shades."""
    signs = SHADES if unicode else PLAIN
    levels = (values.clamp(0, 1) * (len(signs) - 1)).round().long().tolist()
    return ["".join(signs[level] * wide for level in row) for row in levels]


def resized(values: Tensor, rows: int, columns: int) -> Tensor:
    """[rows, columns] from any size: means of what falls into a cell."""
    return torch.nn.functional.adaptive_avg_pool2d(values[None, None].float(), (rows, columns))[0, 0]


def enlarged(values: Tensor, times: int) -> Tensor:
    """Each number `times` times down and across."""
    return values.repeat_interleave(times, 0).repeat_interleave(times, 1)


def scaled(values: Tensor) -> Tensor:
    """0 to 1, from the smallest to the largest."""
    low, high = float(values.min()), float(values.max())
    return torch.zeros_like(values) if high <= low else (values - low) / (high - low)


def beside(pictures: list[tuple[str, list[str]]], room: int) -> list[str]:
    """Pictures of one size with titles above them, as many side by side as fit into `room` columns."""
    if not pictures:
        return []
    width = max(len(lines[0]) for _, lines in pictures)
    column = max(width, *(len(title) for title, _ in pictures))
    fits = max(1, (room + 3) // (column + 3))
    found: list[str] = []
    for start in range(0, len(pictures), fits):
        some = pictures[start : start + fits]
        found += ["", "   ".join(title.ljust(column) for title, _ in some).rstrip()]
        found += [
            "   ".join(lines[at].ljust(column) for _, lines in some).rstrip() for at in range(len(some[0][1]))
        ]
    return found[1:]
