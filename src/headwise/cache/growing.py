"""A cache that holds every step, and gradients too."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.cache.base import CacheView, check_crop
from headwise.cache.joined import JoinedCache
from headwise.masks import ValidKeys


class GrowingCache(JoinedCache):
    """Keys and values of all steps so far, one longer tensor per chunk.

    Nothing is written in place, so gradients flow through earlier chunks. Each append copies what is
    there (attention reads as much anyway); `StaticCache` doesn't.

    Padding of a chunk stays as a hole at position -1, which no query may attend to.
    """

    @property
    def k(self) -> Tensor | None:
        """[*batch, kv_heads, k_len, d_k]; None while empty."""
        return self._k

    @property
    def v(self) -> Tensor | None:
        """[*batch, kv_heads, k_len, d_v]; None while empty."""
        return self._v

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        k, v, q_positions, k_positions = self._joined(k, v, lengths)
        self._k, self._v, self._k_positions = k, v, k_positions
        mask = None if self._equal else ValidKeys()
        return CacheView(k, v, q_positions, k_positions, mask, aligned=self._equal)

    def crop(self, n: int | Tensor) -> None:
        if self._k is None or self._k_positions is None:
            return
        check_crop(n, tuple(self._k.shape[:-3]))
        if isinstance(n, int) and isinstance(self._total, int):
            self._cut(min(n, self._total))
            return
        total = self.lengths
        limit = torch.as_tensor(n, device=total.device).expand(total.shape)
        kept = self._k_positions < limit.unsqueeze(-1)  # [*batch, k_len]
        self._k_positions = torch.where(kept, self._k_positions, -1)
        self._total = torch.minimum(total, limit)
