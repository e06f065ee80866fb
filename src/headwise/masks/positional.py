"""Masks that look at nothing but the two positions."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from headwise.masks.base import Mask, tile_codes
from headwise.masks.frame import Frame


@dataclass(frozen=True, eq=False, repr=False)
class Causal(Mask):
    """A query attends to itself and to older keys: k_pos <= q_pos.

    With the default positions the last query is the newest key, so one query over eight cached keys
    sees all eight, and where there are more queries than keys the first ones see nothing. For queries
    that start where the keys start, give the call `align="start"`.

    Source: Vaswani et al. 2017, section 3.2.3 (masking of illegal connections in the decoder).
    """

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return k_pos <= q_pos

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        q_low, q_high = frame.q_ends(q_block)
        k_low, k_high = frame.k_ends(k_block)
        return tile_codes(k_low <= q_high, k_high <= q_low)

    def describe(self) -> str:
        return "causal"


@dataclass(frozen=True, eq=False, repr=False)
class ValidKeys(Mask):
    """Keys at positions from 0 on: k_pos >= 0. Cache slots that hold no key yet stand at -1, and no
    other mask hides them (`Causal` alone would allow them: -1 <= q_pos)."""

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return k_pos >= 0

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        k_low, k_high = frame.k_ends(k_block)
        codes = tile_codes(k_high >= 0, k_low >= 0)
        return codes.expand(*codes.shape[:-2], -(-frame.q_len // q_block), codes.shape[-1])

    def describe(self) -> str:
        return "valid keys"
