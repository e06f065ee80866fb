"""Which heads of a trained Vision Transformer would be missed: each is silenced in turn.

python -m benchmarks.silence runs/digits                       its test set
python -m benchmarks.silence runs/digits --split valid --json  another one, as JSON

A head is silenced by setting its columns of the output projection to 0: the layer is then the same without
it, exactly. After each, its columns are put back. Michel, Levy and Neubig 2019 did so with translation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headwise import MultiHeadAttention
from headwise.applications import find


@dataclass(frozen=True)
class Silenced:
    """What is right of a test set without one head."""

    layer: int
    head: int
    right: int


@dataclass(frozen=True)
class Report:
    """
    Attributes:
        examples: of the test set.
        right: of them, with all heads.
        heads: the same without each.
    """

    examples: int
    right: int
    heads: tuple[Silenced, ...]

    @property
    def worst(self) -> Silenced:
        """The head that is missed most."""
        return min(self.heads, key=lambda one: one.right)

    @property
    def harmless(self) -> int:
        """Heads without which no fewer are right."""
        return sum(one.right >= self.right for one in self.heads)

    @property
    def fewest(self) -> tuple[int, ...]:
        """Of each layer: right without the head of it that is missed most."""
        return tuple(
            min(one.right for one in self.heads if one.layer == layer)
            for layer in sorted({one.layer for one in self.heads})
        )

    def text(self) -> str:
        worst = self.worst
        lines = [
            f"{len(self.heads)} heads, {self.examples} examples, {self.right} right with all of them",
            f"most missed: {worst.layer}.{worst.head} (layer.head, from 0), {worst.right} right without it",
            f"the head that is missed most of each layer leaves {', '.join(map(str, self.fewest))} right",
            f"without {self.harmless} of the heads, one at a time, no fewer are right",
        ]
        return "\n".join(lines)


@contextmanager
def silenced(layer: MultiHeadAttention, head: int) -> Iterator[None]:
    """The layer without one head, for as long as the block lasts.

    Raises:
        ValueError: the layer has no such head.
    """
    if not 0 <= head < layer.num_heads:
        raise ValueError(f"head {head}: the layer has heads 0 to {layer.num_heads - 1}")
    weight = layer.out_proj.weight
    columns = slice(head * layer.d_v, (head + 1) * layer.d_v)
    kept = weight[:, columns].detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            weight[:, columns] = kept


def measure(run: Path, split: str = "test") -> Report:
    """Silence every head of a run's model in turn."""
    trained: Any = find("vision").open(run, "best", lambda line: print(line, file=sys.stderr))
    whole = trained.evaluate(split, None, {})
    layers = [part for part in trained.model.modules() if isinstance(part, MultiHeadAttention)]
    found = []
    for number, layer in enumerate(layers):
        for head in range(layer.num_heads):
            with silenced(layer, head):
                found.append(Silenced(number, head, _right(trained.evaluate(split, None, {}))))
    return Report(whole.examples, _right(whole), tuple(found))


def _right(evaluation: Any) -> int:
    return sum(one["output"] == one["reference"] for one in evaluation.outputs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.silence",
        description="How many test images are right without each head of a trained run of vision.",
    )
    parser.add_argument("run", type=Path, help="the folder of a run of vision")
    parser.add_argument("--split", default="test", help="test, valid or train")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    report = measure(given.run, given.split)
    print(json.dumps(asdict(report), indent=2) if given.json else report.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
