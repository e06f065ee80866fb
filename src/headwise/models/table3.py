"""The rows of the paper's table 3, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwise.models.transformer_config import TransformerConfig


@dataclass(frozen=True)
class Row:
    """One row of table 3: what it changes of the base model, and what the paper prints for it.

    Perplexity (per word piece) and BLEU are those of newstest2013, the development set; `parameters` is the
    paper's last column, in millions. What a row leaves empty is as in the base model, or isn't given.
    """

    name: str
    changes: Mapping[str, Any]
    perplexity: float
    bleu: float
    parameters: int | None = None
    steps: int = 100_000

    def config(self, vocab_size: int) -> TransformerConfig:
        return TransformerConfig(vocab_size=vocab_size, **self.changes)


# "A" changes the number of heads at constant cost, "B" the width of keys, "C" the size of the model, "D"
# what keeps it from overfitting, "E" the positions.
TABLE_3: tuple[Row, ...] = (
    Row("base", {}, 4.92, 25.8, 65),
    Row("A h=1", {"num_heads": 1, "d_k": 512, "d_v": 512}, 5.29, 24.9),
    Row("A h=4", {"num_heads": 4, "d_k": 128, "d_v": 128}, 5.00, 25.5),
    Row("A h=16", {"num_heads": 16, "d_k": 32, "d_v": 32}, 4.91, 25.8),
    Row("A h=32", {"num_heads": 32, "d_k": 16, "d_v": 16}, 5.01, 25.4),
    Row("B d_k=16", {"d_k": 16}, 5.16, 25.1, 58),
    Row("B d_k=32", {"d_k": 32}, 5.01, 25.4, 60),
    Row("C N=2", {"num_layers": 2}, 6.11, 23.7, 36),
    Row("C N=4", {"num_layers": 4}, 5.19, 25.3, 50),
    Row("C N=8", {"num_layers": 8}, 4.88, 25.5, 80),
    Row("C d_model=256", {"d_model": 256, "d_k": 32, "d_v": 32}, 5.75, 24.5, 28),
    Row("C d_model=1024", {"d_model": 1024, "d_k": 128, "d_v": 128}, 4.66, 26.0, 168),
    Row("C d_ff=1024", {"d_ff": 1024}, 5.12, 25.4, 53),
    Row("C d_ff=4096", {"d_ff": 4096}, 4.75, 26.2, 90),
    Row("D dropout=0.0", {"dropout": 0.0}, 5.77, 24.6),
    Row("D dropout=0.2", {"dropout": 0.2}, 4.95, 25.5),
    Row("D label_smoothing=0.0", {"label_smoothing": 0.0}, 4.67, 25.3),
    Row("D label_smoothing=0.2", {"label_smoothing": 0.2}, 5.47, 25.7),
    Row("E learned", {"positions": "learned"}, 4.92, 25.7),
    Row("big", {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3}, 4.33, 26.4, 213, 300_000),
)


def find_row(name: str) -> Row:
    """The row of this name; letters may be small, and spaces left out.

    Raises:
        ValueError: no such row.
    """
    wanted = _plain(name)
    for row in TABLE_3:
        if _plain(row.name) == wanted:
            return row
    names = ", ".join(f'"{row.name}"' for row in TABLE_3)
    raise ValueError(f"table 3 has no row {name!r}; its rows are {names}")


def _plain(name: str) -> str:
    return "".join(name.lower().split())
