"""A memory's keys and values, computed once."""

from __future__ import annotations

from torch import Tensor

from headwise.cache.base import check_reorder, check_rows
from headwise.cache.owner import Owned
from headwise.cache.words import described


class CrossCache(Owned):
    """Keys and values of a memory (an encoder's output), kept for the later steps of a decoder.

    The first call of the layer fills it; later calls read it and may leave the memory out. **They read it
    even if they are given another memory**, whose numbers are not looked at (only another length is
    noticed): `reset()` it, or take a new one, for each new memory.

    It belongs to one layer, as every cache does: another one is refused.
    """

    def __init__(self) -> None:
        self._k: Tensor | None = None
        self._v: Tensor | None = None
        self._positions: Tensor | None = None

    @property
    def filled(self) -> bool:
        return self._k is not None

    @property
    def length(self) -> int:
        """Number of keys; 0 while empty."""
        return 0 if self._k is None else self._k.shape[-2]

    @property
    def positions(self) -> Tensor | None:
        """Where the keys stand, int64 [k_len] or [*batch, k_len]; None: 0, 1, ..."""
        return self._positions

    def store(self, k: Tensor, v: Tensor, positions: Tensor | None = None) -> None:
        """Keep k [*batch, kv_heads, k_len, d_k], v [*batch, kv_heads, k_len, d_v] and their positions."""
        self._k, self._v, self._positions = k, v, positions

    def view(self) -> tuple[Tensor, Tensor]:
        if self._k is None or self._v is None:
            raise ValueError("This CrossCache is empty: the layer's first call with memory= fills it.")
        return self._k, self._v

    def reset(self) -> None:
        """Forget the memory, and whose it was."""
        self._k = self._v = self._positions = None
        self._disown()

    def __repr__(self) -> str:
        return described(self, self._k, self._v, {})

    def select(self, rows: Tensor) -> None:
        """Keep the sequences `rows` of the batch; see `Cache.select`."""
        if self._k is not None and self._v is not None:
            check_rows(tuple(self._k.shape[:-3]), rows)
            self._k, self._v = self._k[rows], self._v[rows]
            if self._positions is not None and self._positions.ndim > 1:
                self._positions = self._positions[rows]

    def reorder(self, rows: Tensor) -> None:
        """`select` with as many rows as there are sequences (beam search); see `Cache.reorder`."""
        if self._k is not None:
            check_reorder(tuple(self._k.shape[:-3]), rows)
        self.select(rows)
