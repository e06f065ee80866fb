"""Query, key and value projections stored as one matrix, in the two row orders that exist.

"stacked":  all queries, then all keys, then all values: [Q | K | V]. torch.nn.MultiheadAttention, GPT-2,
            ViT.
"per_head": for each key/value head its query heads, its key and its value: [q_i | k_i | v_i]. GPT-NeoX,
            BLOOM; Falcon with grouped heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

FusedLayout = Literal["stacked", "per_head"]
FUSED_LAYOUTS = get_args(FusedLayout)


@dataclass(frozen=True)
class FusedRows:
    """How many rows each part of a fused matrix has."""

    num_heads: int
    num_kv_heads: int
    d_k: int
    d_v: int

    @property
    def parts(self) -> tuple[int, int, int]:
        """Rows of Q, K and V."""
        return self.num_heads * self.d_k, self.num_kv_heads * self.d_k, self.num_kv_heads * self.d_v

    def split(self, fused: Tensor, layout: FusedLayout) -> tuple[Tensor, Tensor, Tensor]:
        """[rows, ...] -> Q [heads * d_k, ...], K [kv_heads * d_k, ...], V [kv_heads * d_v, ...].

        Raises:
            ValueError: another number of rows, or an unknown layout.
        """
        _check_layout(layout)
        if fused.shape[0] != sum(self.parts):
            raise ValueError(
                f"The fused tensor is {tuple(fused.shape)}: expected {sum(self.parts)} rows, "
                f"{self.num_heads} heads x d_k {self.d_k} + {self.num_kv_heads} kv heads x (d_k {self.d_k} + "
                f"d_v {self.d_v}). A weight stored [in, out] (GPT-2's Conv1D) needs transposed=True."
            )
        if layout == "stacked":
            q, k, v = fused.split(self.parts)
            return q, k, v
        groups = fused.reshape(self.num_kv_heads, -1, *fused.shape[1:])
        q, k, v = groups.split([rows // self.num_kv_heads for rows in self.parts], dim=1)
        return q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)

    def join(self, q: Tensor, k: Tensor, v: Tensor, layout: FusedLayout) -> Tensor:
        """The inverse of `split`."""
        _check_layout(layout)
        if layout == "stacked":
            return torch.cat((q, k, v))
        parts = [part.reshape(self.num_kv_heads, -1, *part.shape[1:]) for part in (q, k, v)]
        return torch.cat(parts, dim=1).flatten(0, 1)


def _check_layout(layout: str) -> None:
    if layout not in FUSED_LAYOUTS:
        raise ValueError(f"layout={layout!r}: expected one of {FUSED_LAYOUTS}.")
