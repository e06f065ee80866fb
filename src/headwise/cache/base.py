"""What every cache of keys and values can do."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.cache.owner import Owned
from headwise.masks import Mask


class CacheView(NamedTuple):
    """What the new queries attend to.

    Shapes:
        k, v: [*batch, kv_heads, k_len, d_k] and [..., d_v], earlier steps and new ones.
        q_positions: int64 [n] or [*batch, n], of the new steps.
        k_positions: int64 [k_len] or [*batch, k_len]; -1 marks a slot that holds no key.
        mask: what must be hidden besides the caller's own mask; None if nothing.
        aligned: the positions are the default ones (keys from 0 on, queries at their end), so that
            they need not be handed to `attention`.
    """

    k: Tensor
    v: Tensor
    q_positions: Tensor
    k_positions: Tensor
    mask: Mask | None
    aligned: bool


class Pushed(NamedTuple):
    """What the query of a pushed step sees of k and v [batch, kv_heads, `next_length` or more, d].

    length: that many keys, the first ones; None where entries differ.
    lengths: how many of each entry then, int64 [batch].
    """

    k: Tensor
    v: Tensor
    length: int | None
    lengths: Tensor | None = None


class Cache(Owned):
    """Base of the caches that keep the steps of one layer's own sequence.

    One cache belongs to one layer, and to one place of it: a layer that a model calls twice for the same step
    needs two. The layer that fills a cache owns it until `reset()`, and another one is refused (in compiled
    calls it isn't noticed).

    Feeding a sequence in chunks, of any sizes, gives what feeding it whole would give, if the mask is
    causal. Sequences of a batch may be of unequal lengths: each chunk is padded at its end, and
    `lengths` says how many of its steps are real; positions go on from there for each sequence.
    Steps that aren't real leave no trace.
    """

    @property
    def lengths(self) -> Tensor:
        """Steps seen so far, int64 [*batch] ([] before anything was appended)."""
        raise NotImplementedError

    def next_positions(self, n: int, *, device: torch.device | str | None = None) -> Tensor:
        """Positions of the next n steps: int64 [n], or [*batch, n] where sequences differ in length."""
        raise NotImplementedError

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        """Keep n new steps, and say what their queries attend to.

        Args:
            k: [*batch, kv_heads, n, d_k], turned already if rotary.
            v: [*batch, kv_heads, n, d_v].
            lengths: int64 [*batch], how many of the n steps are real. Default: all.

        Raises:
            ValueError: shapes, types or lengths that don't fit; more steps than there is room for.
                Nothing was written then.
        """
        raise NotImplementedError

    def mark(self) -> Any:
        """A mark to `rollback` to, if the call that an append was for turns out to be refused."""
        raise NotImplementedError

    def rollback(self, mark: Any) -> None:
        """Be as at `mark`, with at most one append in between."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything, and whose it was."""
        raise NotImplementedError

    def crop(self, n: int | Tensor) -> None:
        """Keep the first n steps of each sequence, n being a number or int64 [*batch].

        Raises:
            TypeError, ValueError: n is no whole number (or tensor of them), below 0, or of another shape.
        """
        raise NotImplementedError

    def select(self, rows: Tensor) -> None:
        """Keep the sequences `rows` of the batch (int64 indices, or bool [batch]) in that order.

        Drops finished sequences; with repeated indices it follows the beams of a beam search.

        Raises:
            TypeError, ValueError: rows are no indices, or the batch has not one dimension.
        """
        raise NotImplementedError

    def reorder(self, rows: Tensor) -> None:
        """`select` with as many rows as there are sequences (beam search)."""
        check_reorder(tuple(self.lengths.shape), rows)
        self.select(rows)


def real_steps(lengths: Tensor, n: int) -> Tensor:
    """bool [*batch, n]: which steps of a chunk are real."""
    return torch.arange(n, device=lengths.device) < lengths.unsqueeze(-1)


def over_features(steps: Tensor) -> Tensor:
    """[*batch, n] -> [*batch, 1, n, 1], to meet keys [*batch, kv_heads, n, d]."""
    return steps[..., None, :, None]


def check_chunk(k: Tensor, v: Tensor, lengths: Tensor | None) -> None:
    """Raise ValueError where a chunk of keys and values doesn't fit together."""
    if k.ndim < 3 or v.ndim != k.ndim or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"k.shape={tuple(k.shape)} and v.shape={tuple(v.shape)}: expected [*batch, kv_heads, n, d_k] and "
            f"[*batch, kv_heads, n, d_v], alike but for the last."
        )
    if k.dtype != v.dtype or k.device != v.device:
        raise ValueError(
            f"k is {k.dtype} on {k.device}, v is {v.dtype} on {v.device}: they must be of one "
            f"type and device."
        )
    if lengths is None:
        return
    _check_tensor("lengths", lengths)
    batch, n = k.shape[:-3], k.shape[-2]
    if lengths.shape != batch or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(
            f"lengths is {lengths.dtype} {tuple(lengths.shape)}: expected one int64 for each sequence, "
            f"{tuple(batch)}."
        )
    if not torch.compiler.is_compiling() and lengths.numel():
        low, high = int(lengths.min()), int(lengths.max())
        if low < 0 or high > n:
            raise ValueError(
                f"lengths go from {low} to {high}, but the chunk has {n} steps: each must be in 0 .. {n}."
            )


def check_same(name: str, kept: Tensor, new: Tensor) -> None:
    """Raise ValueError unless new keys (or values) are like those kept, but for their number."""
    if (*kept.shape[:-2], kept.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
        raise ValueError(
            f"{name}.shape={tuple(new.shape)}: the cache holds [*batch, kv_heads, n, d] = "
            f"{(*kept.shape[:-2], 'n', kept.shape[-1])}. reset() the cache for another batch, or select() "
            f"rows; each layer needs its own cache (LayerCaches makes them)."
        )
    if kept.dtype != new.dtype or kept.device != new.device:
        raise ValueError(
            f"{name} is {new.dtype} on {new.device}, the cache holds {kept.dtype} on {kept.device}: make the "
            f"cache with dtype={new.dtype}, device={str(new.device)!r}, or keep autocast as it was."
        )


def continues(kept: Tensor, new: Tensor) -> bool:
    """Whether `new` [batch, kv_heads, 1, d] is one more step of `kept`."""
    sizes = kept.shape
    return (
        len(sizes) == 4
        and new.shape == (sizes[0], sizes[1], 1, sizes[3])
        and new.dtype == kept.dtype
        and new.device == kept.device
    )


def writable(x: Tensor) -> bool:
    """Whether x may be written into now: tensors of inference mode can't be elsewhere."""
    return torch.is_inference_mode_enabled() or not x.is_inference()


def check_reorder(batch: tuple[int, ...], rows: Tensor) -> None:
    """Raise TypeError or ValueError unless there is one index for each sequence."""
    _check_tensor("rows", rows)
    if rows.dtype == torch.bool or tuple(rows.shape) != batch:
        raise ValueError(
            f"rows is {rows.dtype} {tuple(rows.shape)}: reorder needs one int64 index for each sequence of "
            f"the batch {batch}; to change their number use select()."
        )


def check_rows(batch: tuple[int, ...], rows: Tensor) -> None:
    """Raise ValueError unless rows choose sequences of a batch with one dimension."""
    _check_tensor("rows", rows)
    if len(batch) != 1:
        raise ValueError(
            f"The cache's batch is {batch}: sequences can be chosen where the batch has one "
            f"dimension; flatten it."
        )
    # Not uint8: torch takes it for a mask.
    known = rows.dtype in (torch.int64, torch.int32, torch.bool)
    if rows.ndim != 1 or not known or (rows.dtype == torch.bool and rows.shape != batch):
        raise ValueError(
            f"rows is {rows.dtype} {tuple(rows.shape)}: expected int64 indices [rows], or bool {batch}."
        )


def check_crop(n: int | Tensor, batch: tuple[int, ...]) -> None:
    """Raise TypeError or ValueError unless n is a count of steps, or one for each sequence."""
    if isinstance(n, Tensor):
        if n.is_floating_point() or n.is_complex() or n.dtype == torch.bool:
            raise TypeError(f"crop(n) got {n.dtype}: n counts steps, a number or int64 [*batch].")
        if tuple(n.shape) not in ((), batch):
            raise ValueError(
                f"crop(n) got n.shape={tuple(n.shape)}: expected one n, or one for each of {batch}."
            )
        low = 0 if torch.compiler.is_compiling() or not n.numel() else int(n.min())
    elif isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"crop(n) got {n!r}: n counts steps, a number or int64 [*batch].")
    else:
        low = n
    if low < 0:
        raise ValueError(
            f"crop({low}): n counts the steps that are kept, 0 or more; to drop the last m of them, "
            f"crop(cache.lengths - m)."
        )


def _check_tensor(name: str, given: object) -> None:
    if not isinstance(given, Tensor):
        fix = f": pass torch.tensor({given!r})" if isinstance(given, list | tuple) else ""
        raise TypeError(f"{name} is a {type(given).__name__}, expected a tensor{fix}.")
