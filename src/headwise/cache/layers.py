"""The caches of all layers of a model, handled as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from headwise.cache.base import Cache


class LayerCaches:
    """One cache per layer: `caches[i]` goes to layer i.

    Args:
        make: makes one cache, e.g. `GrowingCache` or `lambda: RingCache(127)`.
        layers: how many.
    """

    def __init__(self, make: Callable[[], Cache], layers: int) -> None:
        if layers < 1:
            raise ValueError(f"layers={layers}: must be 1 or more.")
        self._caches = tuple(make() for _ in range(layers))

    def __getitem__(self, layer: int) -> Cache:
        return self._caches[layer]

    def __len__(self) -> int:
        return len(self._caches)

    def __iter__(self) -> Iterator[Cache]:
        return iter(self._caches)

    @property
    def lengths(self) -> Tensor:
        """Steps seen so far, int64 [*batch]."""
        return self._caches[0].lengths

    def next_positions(self, n: int) -> Tensor:
        """Positions of the next n steps, for encodings that are added to embeddings."""
        return self._caches[0].next_positions(n)

    def reset(self) -> None:
        for cache in self._caches:
            cache.reset()

    def crop(self, n: int | Tensor) -> None:
        for cache in self._caches:
            cache.crop(n)

    def select(self, rows: Tensor) -> None:
        for cache in self._caches:
            cache.select(rows)

    def reorder(self, rows: Tensor) -> None:
        for cache in self._caches:
            cache.reorder(rows)
