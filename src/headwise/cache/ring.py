"""A cache for windowed attention: only the steps that a window reaches."""

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
from headwise.masks import Mask, ValidKeys, Window


class RingCache(Cache):
    """The last `before` steps of each sequence: what `Window(before, 0)` needs of the past.

    A chunk attends to the steps that are kept and to itself, before any step is dropped, so a chunk
    longer than the window loses nothing. The window is part of the cache: every query sees itself and
    at most `before` steps before it, whatever mask the call brings.

    Memory is `before` steps, however long the sequence. Nothing is written in place, so gradients
    flow through earlier chunks.

    Args:
        before: how many steps before its own a query may attend to (a window of W keys with itself:
            W - 1).
    """

    def __init__(self, before: int) -> None:
        super().__init__()
        if isinstance(before, bool) or not isinstance(before, int):
            raise TypeError(f"before={before!r}: a window reaches a whole number of steps back.")
        if before < 0:
            raise ValueError(f"before={before}: a window reaches 0 or more steps back.")
        self.before = before
        # Oldest first. Where sequences differ in length they end together, and what is missing at the
        # start of the shorter ones stands at position -1.
        self._k: Tensor | None = None
        self._v: Tensor | None = None
        self._k_positions: Tensor | None = None  # [kept], or [*batch, kept]

    @property
    def lengths(self) -> Tensor:
        if isinstance(self._total, Tensor):
            return self._total
        batch = () if self._k is None else self._k.shape[:-3]
        return torch.full(batch, self._total, device=None if self._k is None else self._k.device)

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        check_chunk(k, v, lengths)
        if self._k is not None and self._v is not None:
            check_same("k", self._k, k)
            check_same("v", self._v, v)
        n, batch = k.shape[-2], k.shape[:-3]
        equal = isinstance(self._total, int) and lengths is None
        if not equal and isinstance(self._total, int):
            self._total = torch.full(batch, self._total, device=k.device)
        q_positions = new_positions = after(self._total, n, k.device)
        if lengths is not None:
            lengths = lengths.to(device=k.device, dtype=torch.int64)
            real = real_steps(lengths, n)
            new_positions = torch.where(real, q_positions, -1)
            k = torch.where(over_features(real), k, 0)
            v = torch.where(over_features(real), v, 0)
        if self._k is not None and self._v is not None and self._k_positions is not None:
            old = self._k_positions
            if not equal:
                old = old.expand(*batch, old.shape[-1])
            k, v = torch.cat((self._k, k), dim=-2), torch.cat((self._v, v), dim=-2)
            k_positions = torch.cat((old, new_positions), dim=-1)
        else:
            k_positions = new_positions
        self._total = self._total + (n if lengths is None else lengths)
        self._keep(k, v, k_positions, None if lengths is None else k.shape[-2] - n + lengths)
        mask: Mask = Window(self.before, None)
        if not equal:
            mask = mask & ValidKeys()
        return CacheView(k, v, q_positions, k_positions, mask, aligned=False)

    def mark(self) -> Any:
        return self._k, self._v, self._k_positions, self._total

    def rollback(self, mark: Any) -> None:
        self._k, self._v, self._k_positions, self._total = mark

    def reset(self) -> None:
        self._k = self._v = self._k_positions = None
        self._total = 0

    def crop(self, n: int | Tensor) -> None:
        """As in `Cache`; only while no step has been dropped, since dropped steps don't come back.

        Raises:
            ValueError: the steps before the n-th are gone.
        """
        if self._k is None or self._v is None or self._k_positions is None:
            return
        total = self.lengths
        check_crop(n, tuple(total.shape))
        limit = torch.as_tensor(n, device=total.device).expand(total.shape)
        cut = torch.minimum(total, limit)
        if bool(((cut < total) & (total > self.before)).any()):
            raise ValueError(
                f"crop({n}): the cache keeps {self.before} steps and has seen {int(total.max())}, so the "
                f"steps "
                f"before the {int(limit.min())}-th are gone. Use a GrowingCache or StaticCache to go back."
            )
        if isinstance(n, int) and isinstance(self._total, int):
            kept = min(self._total, n)
            self._k, self._v = self._k[..., :kept, :], self._v[..., :kept, :]
            self._k_positions, self._total = self._k_positions[..., :kept], kept
            return
        width = self._k.shape[-2]
        positions = self._k_positions.expand(*total.shape, width)
        self._keep(self._k, self._v, positions, width - (total - cut))
        self._total = cut

    def select(self, rows: Tensor) -> None:
        if self._k is None or self._v is None or self._k_positions is None:
            return
        check_rows(tuple(self._k.shape[:-3]), rows)
        self._k, self._v = self._k[rows], self._v[rows]
        if isinstance(self._total, Tensor):
            self._total, self._k_positions = self._total[rows], self._k_positions[rows]

    def _keep(self, k: Tensor, v: Tensor, positions: Tensor, ends: Tensor | None) -> None:
        """Keep the last `before` steps up to `ends` [*batch] (None: up to the last)."""
        width = min(self.before, k.shape[-2])
        if ends is None:
            first = k.shape[-2] - width
            # Copies: a view would keep the whole chunk alive.
            self._k, self._v = k[..., first:, :].clone(), v[..., first:, :].clone()
            self._k_positions = positions[..., first:]
            return
        at = ends.unsqueeze(-1) - width + torch.arange(width, device=k.device)  # [*batch, width]
        there = at.clamp(min=0)
        self._k_positions = torch.where(at >= 0, positions.gather(-1, there), -1)
        index = over_features(there)
        self._k = k.gather(-2, index.expand(*k.shape[:-2], width, k.shape[-1]))
        self._v = v.gather(-2, index.expand(*v.shape[:-2], width, v.shape[-1]))
