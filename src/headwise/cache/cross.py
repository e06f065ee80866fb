"""A memory's keys and values, computed once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from headwise.cache.base import check_reorder, check_rows
from headwise.cache.owner import Owned
from headwise.cache.words import described
from headwise.kernels.problem import score_dtype
from headwise.masks import KeyLengths
from headwise.masks.frame import Frame


class Visible(NamedTuple):
    """What the queries of a batch see of a memory's keys and values, of which nothing else is hidden.

    lengths: how many keys each entry sees, int64 [1 or batch]; None: all.
    length: that number, where it is the same for all entries.
    added: where it isn't: -inf [batch, 1, 1, k_len] to add to the scores of what is hidden.
    """

    k: Tensor
    v: Tensor
    length: int
    lengths: Tensor | None
    added: Tensor | None


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
        self._visible: tuple[KeyLengths, object, Visible | None] | None = None  # of a mask in a state

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
        if not torch.is_grad_enabled():  # many steps will read them: head by head, as they are read fastest
            k, v = k.contiguous(), v.contiguous()
        self._k, self._v, self._positions = k, v, positions
        self._visible = None

    def view(self) -> tuple[Tensor, Tensor]:
        if self._k is None or self._v is None:
            raise ValueError("This CrossCache is empty: the layer's first call with memory= fills it.")
        return self._k, self._v

    def visible(self, mask: KeyLengths | None) -> Visible | None:
        """What a mask of padding leaves of keys [batch, kv_heads, k_len, d], found once for the same mask.

        None where that takes a closer look: keys at positions of their own, an input without any key.
        """
        if self._k is None or self._v is None or self._positions is not None or self._k.ndim != 4:
            return None
        if mask is None:
            return Visible(self._k, self._v, self._k.shape[2], None, None)
        state = _state(mask.lengths)
        if self._visible is None or self._visible[0] is not mask or self._visible[1] != state:
            self._visible = mask, state, _left(mask, self._k, self._v)
        return self._visible[2]

    def reset(self) -> None:
        """Forget the memory, and whose it was."""
        self._k = self._v = self._positions = self._visible = None
        self._disown()

    def __repr__(self) -> str:
        return described(self, self._k, self._v, {})

    def select(self, rows: Tensor) -> None:
        """Keep the sequences `rows` of the batch; see `Cache.select`."""
        if self._k is not None and self._v is not None:
            check_rows(tuple(self._k.shape[:-3]), rows)
            self._k, self._v, self._visible = self._k[rows], self._v[rows], None
            if self._positions is not None and self._positions.ndim > 1:
                self._positions = self._positions[rows]

    def reorder(self, rows: Tensor) -> None:
        """`select` with as many rows as there are sequences (beam search); see `Cache.reorder`."""
        if self._k is not None:
            check_reorder(tuple(self._k.shape[:-3]), rows)
        self.select(rows)


def _state(lengths: object) -> object:
    """What differs once a tensor was written into."""
    if not isinstance(lengths, Tensor):
        return None
    return lengths.tolist() if lengths.is_inference() else lengths._version


def _left(mask: KeyLengths, k: Tensor, v: Tensor) -> Visible | None:
    batch, heads, keys, _ = k.shape
    frame = Frame.of((batch,), heads, 1, keys, device=k.device)
    mask.check(frame)
    allow = mask.block(frame, slice(0, 1), slice(0, keys))  # [batch or 1, 1, 1, k_len]
    if allow.ndim != 4 or not bool(allow.any(-1).all()):
        return None
    lengths = allow.sum(-1).flatten()  # [1 or batch]
    if len(lengths) == 1:  # the same for all: fewer keys are faster than -inf for some
        return Visible(k, v, int(lengths), lengths, None)
    added = torch.zeros(allow.shape, dtype=score_dtype(k.dtype), device=k.device)
    return Visible(k, v, keys, lengths, added.masked_fill_(~allow, float("-inf")))
