"""A cache that holds every step, and gradients too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.cache.base import (
    Cache,
    CacheView,
    after,
    check_chunk,
    check_crop,
    check_rows,
    check_same,
    over_features,
    real_steps,
)
from headwise.masks import ValidKeys


class GrowingCache(Cache):
    """Keys and values of all steps so far, one longer tensor per chunk.

    Nothing is written in place, so gradients flow through earlier chunks. Each append copies what is
    there (attention reads as much anyway); `StaticCache` doesn't.

    Padding of a chunk stays as a hole at position -1, which no query may attend to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.k: Tensor | None = None
        self.v: Tensor | None = None
        self._k_positions: Tensor | None = None  # [*batch, k_len] once sequences differ in length

    @property
    def lengths(self) -> Tensor:
        if isinstance(self._total, Tensor):
            return self._total
        batch = () if self.k is None else self.k.shape[:-3]
        return torch.full(batch, self._total, device=None if self.k is None else self.k.device)

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        check_chunk(k, v, lengths)
        if self.k is not None and self.v is not None:
            check_same("k", self.k, k)
            check_same("v", self.v, v)
        n = k.shape[-2]
        if isinstance(self._total, int) and self._k_positions is None and lengths is None:
            self._join(k, v)
            q_positions = after(self._total, n, k.device)
            self._total += n
            return self._view(q_positions, after(0, self._total, k.device))
        if self._k_positions is None:
            self._become_unequal(k)
        q_positions = after(self._total, n, k.device)  # [*batch, n]
        new_positions, new = q_positions, torch.full_like(self.lengths, n)
        if lengths is not None:
            new = lengths.to(device=k.device, dtype=torch.int64)
            real = real_steps(new, n)
            new_positions = torch.where(real, q_positions, -1)
            # Whatever stands in the padding, NaN too, is gone at once.
            k = torch.where(over_features(real), k, 0)
            v = torch.where(over_features(real), v, 0)
        self._join(k, v)
        old = q_positions[..., :0] if self._k_positions is None else self._k_positions
        self._k_positions = torch.cat((old, new_positions), dim=-1)
        self._total = self._total + new
        return self._view(q_positions, self._k_positions)

    def mark(self) -> Any:
        return self.k, self.v, self._k_positions, self._total

    def rollback(self, mark: Any) -> None:
        self.k, self.v, self._k_positions, self._total = mark

    def reset(self) -> None:
        self.k = self.v = self._k_positions = None
        self._total = 0

    def crop(self, n: int | Tensor) -> None:
        if self.k is None or self.v is None:
            return
        check_crop(n, tuple(self.k.shape[:-3]))
        if isinstance(n, int) and isinstance(self._total, int):
            self._total = min(n, self._total)
            self.k, self.v = self.k[..., : self._total, :], self.v[..., : self._total, :]
            return
        if self._k_positions is None:
            self._become_unequal(self.k)
        limit = torch.as_tensor(n, device=self.k.device).expand(self.lengths.shape)
        self._total = torch.minimum(self.lengths, limit)
        if self._k_positions is not None:
            kept = self._k_positions < limit.unsqueeze(-1)
            self._k_positions = torch.where(kept, self._k_positions, -1)

    def select(self, rows: Tensor) -> None:
        if self.k is None or self.v is None:
            return
        check_rows(tuple(self.k.shape[:-3]), rows)
        self.k, self.v = self.k[rows], self.v[rows]
        if isinstance(self._total, Tensor):
            self._total = self._total[rows]
        if self._k_positions is not None:
            self._k_positions = self._k_positions[rows]

    def _join(self, k: Tensor, v: Tensor) -> None:
        self.k = k if self.k is None else torch.cat((self.k, k), dim=-2)
        self.v = v if self.v is None else torch.cat((self.v, v), dim=-2)

    def _become_unequal(self, like: Tensor) -> None:
        """From one number for all sequences to a number for each."""
        kept = 0 if self.k is None else self.k.shape[-2]
        self._k_positions = torch.arange(kept, device=like.device).expand(*like.shape[:-3], kept)
        if isinstance(self._total, int):
            self._total = torch.full(like.shape[:-3], self._total, device=like.device)

    def _view(self, q_positions: Tensor, k_positions: Tensor) -> CacheView:
        if self.k is None or self.v is None:
            raise ValueError("The cache is empty: append() first.")
        aligned = self._k_positions is None
        return CacheView(self.k, self.v, q_positions, k_positions, None if aligned else ValidKeys(), aligned)
