"""What a decoder keeps between steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.cache import Cache, CrossCache, LayerCaches
from headwise.masks import KeyLengths, Mask
from headwise.models.pointer import Places


class DecoderCaches:
    """One cache of steps and one of the memory for each layer, and the memory's lengths.

    A model that copies (`Pointer`) has one more of the memory, `copied`, and the `places` of its tokens.

    Rows of the batch are hypotheses: one for each input, or several (a beam), the inputs' one after
    another. With `shared`, the hypotheses of an input read one copy of its memory.

    Args:
        make: makes the cache of one layer's own steps (`GrowingCache`, `lambda: RingCache(127)`, ...).
        layers: how many layers.
    """

    def __init__(self, make: Callable[[], Cache], layers: int, *, shared: bool = True) -> None:
        self.steps = LayerCaches(make, layers)
        self.memory = tuple(CrossCache() for _ in range(layers))
        self.copied = CrossCache()
        self.places: Places | None = None
        self.shared = shared
        self.memory_lengths: Tensor | None = None
        self._padding: KeyLengths | None = None

    def next_positions(self, n: int, device: torch.device | str | None = None) -> Tensor:
        """Positions of the next n steps: int64 [n], or [batch, n] where rows differ in length."""
        return self.steps[0].next_positions(n, device=device)

    def hide_padding(self, lengths: Tensor | None) -> Mask | None:
        """The mask of the memory's padding; lengths given once hold for all later steps."""
        if lengths is not None and lengths is not self.memory_lengths:
            self.memory_lengths, self._padding = lengths, KeyLengths(lengths)
        return self._padding

    def select(self, rows: Tensor, inputs: Tensor | None = None) -> None:
        """Go on with the hypotheses `rows` (int64 [m]), in that order; repeated ones are copied.

        Args:
            inputs: int64 [g], the inputs that these rows are for: the first m / g rows belong to
                inputs[0], and so on. None: those that there are.
        """
        self.steps.select(rows)
        mine = inputs if self.shared else rows
        if mine is None:
            return
        for cache in (*self.memory, self.copied):
            cache.select(mine)
        if self.places is not None:
            self.places = self.places.select(mine)
        if self.memory_lengths is not None:
            self.hide_padding(self.memory_lengths[mine])
