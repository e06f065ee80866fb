"""What can be said of a head, block by block.

An observer never sees the whole weight matrix. It is handed `Block`s: some query rows against all
the keys that they may attend to. Its `measure` returns what the block says, and the pieces are
joined by `joins`: "rows" lays them one after another along q_len, "sum" adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor


@dataclass(frozen=True)
class Block:
    """Some rows of every head's attention, over the keys that any of them may attend to.

    Shapes (B: all batch dimensions as one; H: query heads; r: rows; c: columns):
        scores:  [B, H, r, c], float32 or better: scale, softcap and bias applied; -inf where masked
        weights: [B, H, r, c], the probabilities before dropout; 0 where masked; a row that may attend
                 to nothing is all 0
        lse:     [B, H, r], log-sum-exp of the row (sink included); -inf for a row that may attend to nothing
        q_pos, k_pos: int64 positions, [B or 1, 1, r, 1] and [B or 1, 1, 1, c]
        rows, cols: int64 [r] and [c]: indices of the queries and keys in the call
    """

    scores: Tensor
    weights: Tensor
    lse: Tensor
    q_pos: Tensor
    k_pos: Tensor
    rows: Tensor
    cols: Tensor
    batch: tuple[int, ...]
    q_len: int
    k_len: int


@dataclass(frozen=True, eq=False)
class Observer:
    """Base of all observers.

    Args:
        rows: query indices to look at (None: all). Only these are computed.
        heads: heads to look at (None: all). Only these are computed.
    """

    joins: ClassVar[Literal["rows", "sum"]] = "rows"

    rows: tuple[int, ...] | None = field(default=None, kw_only=True)
    heads: tuple[int, ...] | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """What the result is called: `seen.<name>`; parameters in brackets tell two of a kind apart."""
        raise NotImplementedError

    def measure(self, block: Block) -> tuple[Tensor, ...]:
        """What this block says.

        joins == "rows": each tensor is [B, H, r, ...]. joins == "sum": each is [B, H, ...], and the
        sum over all blocks is the whole.
        """
        raise NotImplementedError

    def finish(self, parts: tuple[Tensor, ...], *, q_len: int) -> object:
        """From the joined tensors to the result. B is unfolded to [*batch] afterwards, in every
        tensor of the result (a tensor, or a NamedTuple of tensors)."""
        return parts[0]

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        """Raise ValueError where this observer doesn't fit the call."""
