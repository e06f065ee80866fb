"""A cache for windowed attention: only the steps that a window reaches."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.cache.base import CacheView, check_crop, over_features
from headwise.cache.joined import JoinedCache
from headwise.masks import ValidKeys, Window


class RingCache(JoinedCache):
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

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        n = k.shape[-2]
        k, v, q_positions, k_positions = self._joined(k, v, lengths)
        ends = None if lengths is None else k.shape[-2] - n + lengths.to(k_positions)
        self._keep(k, v, k_positions, ends)
        window = Window(self.before, None)
        mask = window if self._equal else window & ValidKeys()
        return CacheView(k, v, q_positions, k_positions, mask, aligned=False)

    def crop(self, n: int | Tensor) -> None:
        """As in `Cache`; only while no step has been dropped, since dropped steps don't come back.

        Raises:
            ValueError: the steps before the n-th are gone.
        """
        known = self._k_positions
        if self._k is None or self._v is None or known is None:
            return
        total = self.lengths
        check_crop(n, tuple(total.shape))
        limit = torch.as_tensor(n, device=total.device).expand(total.shape)
        cut = torch.minimum(total, limit)
        if bool(((cut < total) & (total > self.before)).any()):
            raise ValueError(
                f"crop({n}): the cache keeps {self.before} steps and has seen {int(total.max())}, so those "
                f"before the {int(limit.min())}-th are gone. Use a GrowingCache or StaticCache to go back."
            )
        if isinstance(n, int) and isinstance(self._total, int):
            self._cut(min(n, self._total))
            return
        width = self._k.shape[-2]
        positions = known.expand(*total.shape, width)
        self._keep(self._k, self._v, positions, width - (total - cut))
        self._total = cut

    def _sizes(self) -> dict[str, object]:
        return {"before": self.before}

    def _keep(self, k: Tensor, v: Tensor, positions: Tensor, ends: Tensor | None) -> None:
        """Keep the last `before` steps up to `ends` [*batch] (None: up to the last). Sequences that differ
        in length end together; what is missing at the start of the shorter ones stands at -1."""
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
