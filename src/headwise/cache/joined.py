"""What the caches that make longer tensors, and write nothing in place, have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.cache.base import Cache, check_chunk, check_rows, check_same, over_features, real_steps
from headwise.cache.words import described
from headwise.positions.steps import steps_from


class JoinedCache(Cache):
    """Base of the caches that join what they keep and each new chunk. Gradients flow through both.

    The steps that are kept stand in `_k` and `_v` [*batch, kv_heads, kept, d], oldest first.
    """

    def __init__(self) -> None:
        self._k: Tensor | None = None
        self._v: Tensor | None = None
        self._positions: Tensor | None = None
        # Steps seen so far: one number while all sequences are equally long, else int64 [*batch].
        self._total: int | Tensor = 0

    @property
    def _k_positions(self) -> Tensor | None:
        """[kept], or [*batch, kept] once sequences differ; None while empty. Set to None: 0, 1, ..."""
        if self._positions is None and self._k is not None:
            self._positions = torch.arange(self._k.shape[-2], device=self._k.device)
        return self._positions

    @_k_positions.setter
    def _k_positions(self, positions: Tensor | None) -> None:
        self._positions = positions

    @property
    def lengths(self) -> Tensor:
        if isinstance(self._total, Tensor):
            return self._total
        batch = () if self._k is None else self._k.shape[:-3]
        return torch.full(batch, self._total, device=None if self._k is None else self._k.device)

    def next_positions(self, n: int, *, device: torch.device | str | None = None) -> Tensor:
        where = self._total.device if isinstance(self._total, Tensor) else device
        return steps_from(self._total, n, where)

    def mark(self) -> Any:
        return self._k, self._v, self._positions, self._total

    def rollback(self, mark: Any) -> None:
        self._k, self._v, self._positions, self._total = mark

    def reset(self) -> None:
        self._k = self._v = self._positions = None
        self._total = 0
        self._disown()

    def __repr__(self) -> str:
        return described(self, self._k, self._v, self._sizes())

    def _sizes(self) -> dict[str, object]:
        """What `__repr__` says besides."""
        return {}

    def select(self, rows: Tensor) -> None:
        if self._k is None or self._v is None:
            return
        self._check_select(rows)
        self._k, self._v = self._k[rows], self._v[rows]
        if self._positions is not None and self._positions.ndim > 1:
            self._positions = self._positions[rows]
        if isinstance(self._total, Tensor):
            self._total = self._total[rows]

    def _check_select(self, rows: Tensor) -> None:
        if self._k is not None:
            check_rows(tuple(self._k.shape[:-3]), rows)

    @property
    def _equal(self) -> bool:
        """Whether all sequences are known to be equally long."""
        return not isinstance(self._total, Tensor)

    def _joined(self, k: Tensor, v: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What is kept and the new steps, which are counted: k, v, positions of the queries and the keys.

        What isn't real stands at position -1, its numbers (NaN too) replaced by 0.
        """
        check_chunk(k, v, lengths)
        if self._k is not None and self._v is not None:
            check_same("k", self._k, k)
            check_same("v", self._v, v)
        batch, n = k.shape[:-3], k.shape[-2]
        if lengths is not None and not isinstance(self._total, Tensor):
            self._total = torch.full(batch, self._total, device=k.device)
        q_positions = new_positions = self.next_positions(n, device=k.device)
        if lengths is None:
            self._total = self._total + n
        else:
            lengths = lengths.to(device=k.device, dtype=torch.int64)
            real = real_steps(lengths, n)
            new_positions = torch.where(real, q_positions, -1)
            k = torch.where(over_features(real), k, 0)
            v = torch.where(over_features(real), v, 0)
            self._total = self._total + lengths
        positions = self._k_positions
        if self._k is None or self._v is None or positions is None:
            return k, v, q_positions, new_positions
        kept = positions.expand(*new_positions.shape[:-1], positions.shape[-1])
        k, v = torch.cat((self._k, k), dim=-2), torch.cat((self._v, v), dim=-2)
        return k, v, q_positions, torch.cat((kept, new_positions), dim=-1)

    def _cut(self, n: int) -> None:
        """Keep the first n steps of sequences that are equally long and all there."""
        positions = self._k_positions
        if self._k is None or self._v is None or positions is None:
            return
        self._k, self._v = self._k[..., :n, :], self._v[..., :n, :]
        self._k_positions, self._total = positions[..., :n], n
