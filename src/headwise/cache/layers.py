"""The caches of all layers of a model, handled as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from headwise.cache.base import Cache
from headwise.cache.cross import CrossCache


class LayerCaches:
    """One cache per layer: `caches[i]` goes to layer i.

    Args:
        make: makes one cache, e.g. `GrowingCache`, `lambda: RingCache(127)` or
            `lambda: StaticCache.for_layer(layer, batch, max_length)`.
        layers: how many.
        cross: of layers that read a memory too: `memory[i]` is then layer i's `CrossCache`. `reset`, `select`
            and `reorder` go to these as well.

    Raises:
        TypeError, ValueError: something that makes no cache, or the same one each time; no layers.
    """

    def __init__(self, make: Callable[[], Cache], layers: int, *, cross: bool = False) -> None:
        if isinstance(make, Cache) or not callable(make):
            raise TypeError(
                f"make is {make!r}: expected what makes a cache when called, such as the class GrowingCache "
                f"or lambda: RingCache(127)."
            )
        if layers < 1:
            raise ValueError(f"layers={layers}: must be 1 or more.")
        self._caches = tuple(make() for _ in range(layers))
        if len({id(cache) for cache in self._caches}) < layers:
            raise ValueError(
                "make() returned the same cache twice, and each layer needs its own: make it inside."
            )
        self.memory = tuple(CrossCache() for _ in range(layers if cross else 0))

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
        for cache in self._all():
            cache.reset()

    def __repr__(self) -> str:
        across = f", {len(self.memory)} CrossCaches" if self.memory else ""
        return f"LayerCaches({len(self)} x {self._caches[0]!r}{across})"

    def crop(self, n: int | Tensor) -> None:
        for cache in self._caches:
            cache.crop(n)

    def select(self, rows: Tensor) -> None:
        for cache in self._all():
            cache.select(rows)

    def reorder(self, rows: Tensor) -> None:
        for cache in self._all():
            cache.reorder(rows)

    def _all(self) -> Iterator[Cache | CrossCache]:
        yield from self._caches
        yield from self.memory
