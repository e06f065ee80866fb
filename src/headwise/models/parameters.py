"""How many parameters a model has, part by part, and what the paper prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from headwise.models.embeddings import TokenEmbedding
from headwise.models.feed_forward import FeedForward
from headwise.models.pointer import Pointer
from headwise.models.table3 import TABLE_3, Row
from headwise.models.transformer import Transformer
from headwise.multihead import MultiHeadAttention
from headwise.positions import LearnedPositions

NORMS = (nn.LayerNorm, nn.RMSNorm)
ORDER = (
    "encoder self-attention",
    "decoder self-attention",
    "cross-attention",
    "self-attention",
    "feed-forward",
    "copying",
    "norms",
    "embeddings",
    "positions",
    "rest",
)
PAPER_VOCABULARY = 37_000  # "about 37000 tokens" (5.1)


@dataclass(frozen=True)
class Part:
    """One kind of module in a model: how many there are, and what they hold together."""

    name: str
    count: int
    parameters: int

    @property
    def each(self) -> int | None:
        """Parameters of one; None where they differ."""
        return self.parameters // self.count if self.parameters % self.count == 0 else None


@dataclass(frozen=True)
class ParameterCounts:
    """The parts of a model; every parameter is counted once, however many modules share it."""

    parts: tuple[Part, ...]

    @property
    def total(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def layers(self) -> int:
        """All but embeddings and positions."""
        return sum(part.parameters for part in self.parts if part.name not in ("embeddings", "positions"))

    def __getitem__(self, name: str) -> Part:
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(f"no part {name!r}: there are {', '.join(part.name for part in self.parts)}")


def count_parameters(model: nn.Module) -> ParameterCounts:
    """Parameters of each kind of part: each use of attention, feed-forward networks, norms, embeddings,
    learned positions, and the rest."""
    owners: dict[str, tuple[int, int]] = {}
    seen: set[int] = set()
    inside: str | None = None  # the part whose modules are being walked through
    for path, module in model.named_modules():
        if inside is not None and path.startswith(f"{inside}."):
            continue
        inside = None
        kind = _kind(path, module)
        if kind is not None:
            inside = path
            own: Iterable[nn.Parameter] = module.parameters()
        else:
            kind, own = "rest", module.parameters(recurse=False)
        new = {id(p): p.numel() for p in own if id(p) not in seen}
        seen |= new.keys()
        if new:
            count, numbers = owners.get(kind, (0, 0))
            owners[kind] = count + 1, numbers + sum(new.values())
    return ParameterCounts(tuple(Part(name, *owners[name]) for name in sorted(owners, key=ORDER.index)))


def _kind(path: str, module: nn.Module) -> str | None:
    leaf = path.rpartition(".")[2]
    if isinstance(module, Pointer):
        return "copying"
    if isinstance(module, MultiHeadAttention) or leaf in ("self_attention", "cross_attention"):
        if leaf == "cross_attention":
            return "cross-attention"
        side = next((part for part in path.split(".") if part in ("encoder", "decoder")), None)
        return "self-attention" if side is None else f"{side} self-attention"
    if isinstance(module, FeedForward):
        return "feed-forward"
    if isinstance(module, NORMS):
        return "norms"
    if isinstance(module, TokenEmbedding | nn.Embedding):
        return "embeddings"
    return "positions" if isinstance(module, LearnedPositions) else None


def count_row(row: Row, vocab_size: int = PAPER_VOCABULARY) -> ParameterCounts:
    """The parts of a row of table 3 with a vocabulary of this size. No memory is taken for the weights."""
    with torch.device("meta"):
        return count_parameters(Transformer(row.config(vocab_size)))


def fitting_vocabularies(row: Row) -> tuple[int, int] | None:
    """The smallest and largest vocabulary for which this row has as many parameters as the paper prints, in
    whole millions; None where it prints none.

    Counted as in the paper's configuration: attention without biases, those of feed-forward networks and
    norms, and one matrix of vocabulary x d_model. The paper doesn't say what it counts.
    """
    if row.parameters is None:
        return None
    config = row.config(PAPER_VOCABULARY)
    layers = count_row(row).layers
    low, high = (row.parameters * 2 - 1) * 500_000, (row.parameters * 2 + 1) * 500_000
    return -(-(low - layers) // config.d_model), -(-(high - layers) // config.d_model) - 1


def common_vocabularies() -> tuple[int, int]:
    """The vocabularies for which every row but "big" has as many parameters as the paper prints."""
    fitting = [
        ends for row in TABLE_3 if row.name != "big" and (ends := fitting_vocabularies(row)) is not None
    ]
    return max(low for low, _ in fitting), min(high for _, high in fitting)
