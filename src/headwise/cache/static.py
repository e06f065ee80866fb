"""A cache of fixed size, written in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from headwise.cache.base import (
    Cache,
    CacheView,
    Pushed,
    check_chunk,
    check_crop,
    check_rows,
    check_same,
    continues,
    over_features,
    real_steps,
    writable,
)
from headwise.cache.words import described
from headwise.kernels.arguments import arguments
from headwise.masks import ValidKeys
from headwise.positions.steps import steps_from


class StaticCache(Cache):
    """Room for `max_length` steps of each sequence; slot p holds position p.

    No shape ever changes, so a compiled step is compiled once. Slots that hold no step yet stand at
    position -1; whatever number is in them is never seen.

    Args:
        batch: number of sequences, or the batch dimensions.
        kv_heads, d_k, d_v: of the layer. d_v defaults to d_k.
        max_length: steps of each sequence, at most.

    `StaticCache.for_layer(layer, batch, max_length)` reads the rest from the layer.

    It holds numbers, not gradients: append() refuses keys that need a gradient.

    Raises:
        TypeError, ValueError: sizes that are missing, no whole numbers, or too small.
    """

    @arguments(
        missing="give batch=, kv_heads=, max_length= and d_k= (and d_v= where it differs), or "
        "StaticCache.for_layer(layer, batch, max_length)"
    )
    def __init__(
        self,
        batch: int | Sequence[int],
        kv_heads: int,
        max_length: int,
        d_k: int,
        d_v: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        batch = (batch,) if isinstance(batch, int) else tuple(batch)
        d_v = d_k if d_v is None else d_v
        for name, size in {"kv_heads": kv_heads, "max_length": max_length, "d_k": d_k, "d_v": d_v}.items():
            if isinstance(size, bool) or not isinstance(size, int | torch.SymInt):
                raise TypeError(f"{name}={size!r}: expected a whole number.")
        if min(*batch, 0, 0) < 0 or min(kv_heads, max_length, d_k, d_v) < 1:
            raise ValueError(
                f"batch={batch}, kv_heads={kv_heads}, max_length={max_length}, d_k={d_k}, d_v={d_v}: sizes "
                f"must be 1 or more (a batch may be empty)."
            )
        self.max_length = max_length
        # One slot more than is shown: padding is written there, so that it lands nowhere.
        self._k = torch.zeros(*batch, kv_heads, max_length + 1, d_k, device=device, dtype=dtype)
        self._v = torch.zeros(*batch, kv_heads, max_length + 1, d_v, device=device, dtype=dtype)
        self._seen = torch.zeros(batch, dtype=torch.int64, device=self._k.device)
        self._equal = True  # all sequences are equally long
        self._most = 0  # the longest sequence's length, or more; known without asking the device

    @classmethod
    def for_layer(
        cls,
        layer: Any,
        batch: int | Sequence[int],
        max_length: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """An empty cache with the key heads, widths, device and dtype of a `MultiHeadAttention`.

        Args:
            batch, max_length: as above.
            device, dtype: default: those of the layer's parameters. (Under autocast, keys have its dtype.)

        Raises:
            TypeError: a layer without num_kv_heads, d_k and d_v.
        """
        lacks = [name for name in ("num_kv_heads", "d_k", "d_v") if not hasattr(layer, name)]
        if lacks:
            raise TypeError(
                f"for_layer got a {type(layer).__name__} without {', '.join(lacks)}: pass a "
                f"MultiHeadAttention, or the sizes to StaticCache."
            )
        real = (p for p in layer.parameters() if p.is_floating_point())
        first = next(real, torch.empty(0))
        return cls(
            batch,
            layer.num_kv_heads,
            max_length,
            layer.d_k,
            layer.d_v,
            device=first.device if device is None else device,
            dtype=first.dtype if dtype is None else dtype,
        )

    def __repr__(self) -> str:
        return described(self, self._k, self._v, {"max_length": self.max_length})

    @property
    def k(self) -> Tensor:
        """[*batch, kv_heads, max_length, d_k]"""
        return self._k[..., : self.max_length, :]

    @property
    def v(self) -> Tensor:
        """[*batch, kv_heads, max_length, d_v]"""
        return self._v[..., : self.max_length, :]

    @property
    def lengths(self) -> Tensor:
        return self._seen.clone()

    def next_positions(self, n: int, *, device: torch.device | str | None = None) -> Tensor:
        return steps_from(self._start, n)

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        check_chunk(k, v, lengths)
        check_same("k", self._k, k)
        check_same("v", self._v, v)
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise ValueError(
                "The keys need a gradient, and a StaticCache is written in place, where gradients are lost: "
                "decode under torch.no_grad(), or use a GrowingCache to train through it."
            )
        n = k.shape[-2]
        most = self._room(n, lengths)
        q_positions = self.next_positions(n)  # [n] or [*batch, n]
        if lengths is None:
            slots = q_positions
            self._seen.add_(n)
        else:
            grown = lengths.to(device=k.device, dtype=torch.int64)
            slots = torch.where(real_steps(grown, n), q_positions, self.max_length)
            self._seen.add_(grown)
            self._equal = False
        for store, new in ((self._k, k), (self._v, v)):
            if slots.ndim == 1:
                store.index_copy_(-2, slots, new)
            else:
                store.scatter_(-2, over_features(slots).expand(new.shape), new)
        self._most = most
        every = torch.arange(self.max_length, device=k.device)
        k_positions = torch.where(every < self._start.unsqueeze(-1), every, -1)
        return CacheView(self.k, self.v, q_positions, k_positions, ValidKeys(), aligned=False)

    @property
    def next_length(self) -> int | None:
        """How many keys `push` shows, if it may be asked: there is room. Else None."""
        ready = self._most < self.max_length and writable(self._k) and writable(self._seen)
        return self.max_length if ready else None

    @property
    def uneven(self) -> bool:
        """Whether sequences may differ in length."""
        return not self._equal

    def push(self, k: Tensor, v: Tensor) -> Pushed | None:
        """Show one step that is real in all sequences, [batch, kv_heads, 1, d], as `append` would, without
        its checks. It counts from `keep_pushed` on, and until then nobody sees it.

        None unless gradients are off, and the step is like those kept.
        """
        if torch.is_grad_enabled() or not (continues(self._k, k) and continues(self._v, v)):
            return None
        at = self._most
        for store, new in ((self._k, k), (self._v, v)):
            if self._equal:
                store.narrow(2, at, 1).copy_(new)
            else:
                slots = self._seen.unsqueeze(-1)  # [batch, 1]
                store.scatter_(2, over_features(slots).expand(new.shape), new)
        if self._equal:
            return Pushed(self._k, self._v, at + 1)
        return Pushed(self._k, self._v, None, self._seen + 1)

    def keep_pushed(self, pushed: Pushed) -> None:
        """Count the step that `push` showed last."""
        self._seen.add_(1)
        self._most += 1

    def mark(self) -> Any:
        return self._seen.clone(), self._equal, self._most

    def rollback(self, mark: Any) -> None:
        # What was written stays in slots beyond the lengths, where nobody sees it.
        seen, self._equal, self._most = mark
        self._seen.copy_(seen)

    def reset(self) -> None:
        self._seen.zero_()
        self._equal, self._most = True, 0
        self._disown()

    def crop(self, n: int | Tensor) -> None:
        check_crop(n, tuple(self._seen.shape))
        limit = torch.as_tensor(n, device=self._seen.device).expand(self._seen.shape)
        self._seen.copy_(torch.minimum(self._seen, limit))
        if isinstance(n, int):
            self._most = min(self._most, n)
        else:
            self._equal = False

    def select(self, rows: Tensor) -> None:
        check_rows(tuple(self._seen.shape), rows)
        chosen = self._k[rows], self._v[rows], self._seen[rows]
        if chosen[0].shape == self._k.shape:
            # The same number of rows: the tensors stay the same objects (a compiled step holds on to them).
            self._k.copy_(chosen[0])
            self._v.copy_(chosen[1])
            self._seen.copy_(chosen[2])
        else:
            self._k, self._v, self._seen = chosen

    @property
    def _start(self) -> Tensor:
        """Steps seen so far: [] where all sequences are equally long, else [*batch]."""
        if not self._equal:
            return self._seen
        return self._seen.flatten()[0] if self._seen.numel() else self._seen.new_zeros(())

    def _room(self, n: int, lengths: Tensor | None) -> int:
        """The longest length after n more steps; ValueError if that is too long."""
        most = self._most + n
        if most > self.max_length and not torch.compiler.is_compiling() and self._seen.numel():
            grown = self._seen + (n if lengths is None else lengths.to(self._seen))
            most = int(grown.max())
        if most > self.max_length:
            fix = "reset() or crop() it, make it larger, or use a RingCache for windowed attention"
            if torch.compiler.is_compiling():  # numbers that change can't be written into a message there
                raise ValueError(
                    f"More steps than the cache has room for, max_length={self.max_length}: {fix}."
                )
            raise ValueError(
                f"The cache holds up to {self._most} of max_length={self.max_length} steps and {n} more "
                f"don't fit, they take max_length={most} or more: {fix}. Nothing was written."
            )
        return most
