"""Which keys: what each one receives, and which ones a query prefers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from headwise.observers.base import Block, Observer


@dataclass(frozen=True, eq=False)
class KeyMass(Observer):
    """What each key receives from all queries ("heavy hitters" receive most).

        A_j = sum_i P_ij

    Result: [*batch, heads, k_len], unit: queries; all keys together receive q_len (less what dead rows
    and sinks keep). `rows=` sums over these queries alone: the last few are SnapKV's votes.

    Source: Zhang et al. 2023 (H2O); Li et al. 2024 (SnapKV).
    """

    joins: ClassVar[Literal["rows", "sum"]] = "sum"

    @property
    def name(self) -> str:
        return self.label("key_mass")

    def measure(self, block: Block) -> tuple[Tensor]:
        return (block.over_keys(block.weights.sum(-2)),)


class Top(NamedTuple):
    """The heaviest keys of each query, heaviest first; index -1 and weight 0 where there are no more."""

    indices: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class TopKeys(Observer):
    """The k keys that a query gives most to.

    Result: `Top(indices, weights)`, each [*batch, heads, q_len, k], heaviest first. Indices (int64)
    count the keys of the call; keys of equal weight come in any order. Where a query may attend to
    fewer than k keys (k may be above k_len), the rest is index -1 and weight 0: lengths that grow
    during decoding need no other k. A query that may attend to nothing: -1 and 0 throughout. The
    gradient flows through the weights; the indices have none.

    Args:
        k: how many, at least 1.

    Raises:
        TypeError, ValueError: k is not an int, or below 1.

    Source: asked for in keys_values#30 (eviction and retrieval heads without the whole matrix).
    """

    k: int = 8

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int):
            raise TypeError(f"TopKeys(k) takes an int, got {self.k!r}")
        if self.k < 1:
            raise ValueError(f"TopKeys(k) needs k of 1 or more, got {self.k}")

    @property
    def name(self) -> str:
        return self.label("top_keys", self.k)

    def measure(self, block: Block) -> tuple[Tensor, Tensor]:
        found = min(self.k, block.scores.shape[-1])
        with torch.no_grad():  # scores, not weights: they still differ where weights are all 0
            best, places = block.scores.topk(found, dim=-1)
        weights = block.weights.gather(-1, places)
        indices = block.cols[places].masked_fill(best == float("-inf"), -1)
        missing = (0, self.k - found)
        return pad(indices, missing, value=-1), pad(weights, missing)

    def finish(self, parts: tuple[Tensor, ...], *, q_len: int) -> Top:
        return Top(*parts)


class Peak(NamedTuple):
    """The largest weight of each query and the key that has it (-1 where there is none)."""

    value: Tensor
    key: Tensor


@dataclass(frozen=True, eq=False)
class MaxWeight(Observer):
    """How much a query gives to its favourite key, and which one that is.

        value_i = max_j P_ij        key_i = argmax_j P_ij

    Result: `Peak(value, key)`, each [*batch, heads, q_len]; the first of equals. Averaged over
    queries the value is a head's "confidence". A query that may attend to nothing: value 0, key -1.
    The gradient flows through the value; the key's index has none.

    Source: Voita et al. 2019, section 4 (confident heads).
    """

    @property
    def name(self) -> str:
        return self.label("max_weight")

    def measure(self, block: Block) -> tuple[Tensor, Tensor]:
        if block.scores.shape[-1] == 0:
            return block.weights.sum(-1), torch.full_like(block.lse, -1, dtype=torch.int64)
        with torch.no_grad():  # scores, not weights: they still differ where weights are all 0
            place = block.scores.argmax(-1, keepdim=True)
            none = block.scores.gather(-1, place) == float("-inf")
        value = block.weights.gather(-1, place)
        return value.squeeze(-1), block.cols[place].masked_fill(none, -1).squeeze(-1)

    def finish(self, parts: tuple[Tensor, ...], *, q_len: int) -> Peak:
        return Peak(*parts)
