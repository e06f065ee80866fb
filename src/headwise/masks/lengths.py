"""Masks that end at a length: padded keys, and prefixes that everyone sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import torch
from torch import Tensor

from headwise.masks.base import Mask, tile_codes
from headwise.masks.fits import (
    batch_like,
    counts,
    entry_names,
    highest_position,
    listed,
    readable,
    same_device,
    some_values,
)
from headwise.masks.frame import Frame


@dataclass(frozen=True, eq=False, repr=False)
class _UpTo(Mask):
    """k_pos < length, for one length or one per batch entry."""

    trailing: ClassVar[Mapping[str, int]] = {"lengths": 0}

    lengths: int | Tensor | Sequence[int]
    # Lowest and highest length, read once when the mask is made, so that no call waits for the device.
    _range: tuple[int, int] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if isinstance(self.lengths, list | tuple):
            object.__setattr__(self, "lengths", listed(name, self.lengths))
        counts(name, self.lengths)
        lengths = self._known
        if isinstance(lengths, Tensor):
            if not readable(lengths) or not lengths.numel():
                return
            low, high = torch.stack(torch.aminmax(lengths)).tolist()
        else:
            low = high = lengths
        if low < 0:
            raise ValueError(
                f"{name}: a length counts keys, 0 or more, but {self._entries(low, -1)}; "
                "pass 0 for an entry without keys"
            )
        object.__setattr__(self, "_range", (low, high))

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return k_pos < self._per_batch()

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        k_low, k_high = frame.k_ends(k_block)
        lengths = self._per_batch()
        codes = tile_codes(k_low < lengths, k_high < lengths)
        return codes.expand(*codes.shape[:-2], -(-frame.q_len // q_block), codes.shape[-1])

    def check(self, frame: Frame) -> None:
        name = type(self).__name__
        if isinstance(self.lengths, Tensor):
            batch_like(name, "lengths", self.lengths.shape, frame.batch)
            same_device(name, self.lengths, frame)

    def natural_lengths(self) -> tuple[int | None, int | None]:
        if self._range is None or self._range[1] <= 12:  # a drawing of twelve keys shows where they end
            return None, None
        return None, self._range[1]

    def _per_batch(self) -> int | Tensor:
        """[*batch] -> [*batch, 1, 1, 1], or the int itself."""
        lengths = self._known
        return lengths[..., None, None, None] if isinstance(lengths, Tensor) else lengths

    @property
    def _known(self) -> int | Tensor:
        """The lengths, a list of them being a tensor since the mask was made."""
        return cast("int | Tensor", self.lengths)

    def _entries(self, low: int, high: int | None) -> str:
        """Which entries lie within low .. high, for an error message."""
        if not isinstance(self.lengths, Tensor):
            return f"the length is {self.lengths}"
        wrong = self.lengths >= low
        if high is not None:
            wrong = wrong & (self.lengths <= high)
        return entry_names(self.lengths, wrong)

    def _values(self) -> str:
        return some_values(self.lengths) if isinstance(self.lengths, Tensor) else str(self.lengths)


@dataclass(frozen=True, eq=False, repr=False)
class KeyLengths(_UpTo):
    """The first keys of each batch entry, the rest is padding: k_pos < length.

    A query of an entry of length 0 may attend to nothing, which gives output 0. Queries beyond the
    length are not masked (their output is whatever the valid keys give).

    Args:
        lengths: one int, an int tensor broadcastable to [*batch], or a list of ints, which makes such a
            tensor (on the CPU; `.to(device)` moves it). Values are read once, when the mask is made; give
            each batch its own mask rather than changing the tensor in place.

    Raises:
        TypeError: not an int, an int tensor or a list of ints.
        ValueError: a length is negative; or, at the call, beyond the keys, of another device, or of a
            shape that doesn't broadcast to [*batch].
    """

    def check(self, frame: Frame) -> None:
        super().check(frame)
        if self._range is None:
            return
        keys = highest_position(frame.k_pos, frame.k_start, frame.k_len)
        if keys is not None and self._range[1] > max(keys + 1, frame.k_len):
            limit = max(keys + 1, frame.k_len)
            raise ValueError(
                f"KeyLengths: lengths go from 0 to the number of keys, k_len = {limit}, but "
                f"{self._entries(limit + 1, None)}; pass the true lengths, or "
                f"lengths.clamp(max={limit}) if this call has only the first keys"
            )

    def describe(self) -> str:
        return f"key lengths {self._values()}"


@dataclass(frozen=True, eq=False, repr=False)
class Prefix(_UpTo):
    """Keys that everyone sees: k_pos < length.

    A prefix language model is `Causal() | Prefix(lengths)`: the prefix is read in both directions,
    the rest from left to right. With padding: `(Causal() | Prefix(n)) & KeyLengths(m)`.

    Args and errors: as for `KeyLengths`, but a prefix may be longer than the keys of the call: those that
    are still to come are part of it.

    Source: Raffel et al. 2020 (T5), section 3.2.1, "causal with prefix".
    """

    def describe(self) -> str:
        return f"prefix {self._values()}"
