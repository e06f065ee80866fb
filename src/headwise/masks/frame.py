"""Where the queries and keys of one attention call stand.

A mask speaks about positions ("a query may attend to keys that are not newer than itself").
A kernel works on indices (row 3 of the queries it was handed). `Frame` holds both, so that a
mask needs no other knowledge of the call, and a kernel none of the mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

Index = slice | Tensor  # rows or columns of the score matrix: a slice, or an int64 tensor of indices


@dataclass(frozen=True)
class Frame:
    """Sizes and positions of one attention call.

    Shapes:
        q_pos: int64 [q_len] or [*batch, q_len]. Position of each query.
        k_pos: int64 [k_len] or [*batch, k_len]. Position of each key; below 0 marks a cache slot
            that holds no key yet.
    """

    batch: tuple[int, ...]
    heads: int
    q_len: int
    k_len: int
    q_pos: Tensor
    k_pos: Tensor

    @staticmethod
    def of(
        batch: tuple[int, ...],
        heads: int,
        q_len: int,
        k_len: int,
        *,
        align: str = "end",
        q_pos: Tensor | None = None,
        k_pos: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Frame:
        """Frame with default positions: keys are 0 .. k_len - 1, and the queries end where the keys
        end (`align="end"`: the last query is the newest key) or start where they start ("start")."""
        if k_pos is None:
            k_pos = torch.arange(k_len, device=device)
        if q_pos is None:
            first = k_len - q_len if align == "end" else 0
            q_pos = torch.arange(first, first + q_len, device=device)
        return Frame(batch, heads, q_len, k_len, q_pos, k_pos)

    @property
    def device(self) -> torch.device:
        return self.k_pos.device

    def q(self, rows: Index) -> Tensor:
        """Positions of the queries `rows`, broadcastable to [*batch, heads, rows, keys]."""
        return _over_heads(self.q_pos[..., rows]).unsqueeze(-1)

    def k(self, cols: Index) -> Tensor:
        """Positions of the keys `cols`, broadcastable to [*batch, heads, rows, keys]."""
        return _over_heads(self.k_pos[..., cols]).unsqueeze(-2)


    def select(self, index: slice) -> Frame:
        """The frame of some batch entries: all batch dimensions become one, of which `index` is kept."""
        q_pos = select_batch(self.q_pos, 1, self.batch, index)
        k_pos = select_batch(self.k_pos, 1, self.batch, index)
        count = len(range(*index.indices(prod(self.batch))))
        return Frame((count,), self.heads, self.q_len, self.k_len, q_pos, k_pos)


def select_batch(tensor: Tensor, trailing: int, batch: tuple[int, ...], index: slice) -> Tensor:
    """Fold the batch dimensions of `tensor` into one and keep the entries `index` of it.

    A tensor [*batch (or ones, or nothing), then `trailing` more dimensions]. One that is the same for
    the whole batch comes back without batch dimensions.
    """
    lead = tensor.shape[: tensor.ndim - trailing]
    rest = tensor.shape[tensor.ndim - trailing :]
    if all(size == 1 for size in lead):
        return tensor.reshape(rest)
    return tensor.expand(*batch, *rest).reshape(prod(batch), *rest)[index]


def _over_heads(pos: Tensor) -> Tensor:
    return pos.unsqueeze(-2) if pos.ndim > 1 else pos  # [*batch, n] -> [*batch, 1, n]
