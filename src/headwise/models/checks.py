"""What models refuse in the token ids and lengths that they are given."""

from __future__ import annotations

import torch
from torch import Tensor


def check_ids(name: str, ids: Tensor, vocab_size: int, max_length: int | None = None) -> None:
    """Raise unless ids are whole numbers [batch, length] within the vocabulary, and no longer than the
    model's positions."""
    check_integers(name, ids)
    if ids.ndim != 2:
        raise ValueError(f"{name} must be [batch, length], got shape {tuple(ids.shape)}")
    if max_length is not None and ids.shape[1] > max_length:
        raise ValueError(
            f"{name}: {ids.shape[1]} tokens are more than the {max_length} positions of this model: "
            "shorten the text, or split it"
        )
    check_range(name, ids, vocab_size, "the vocabulary")


def check_integers(name: str, given: Tensor) -> None:
    got = given.dtype if isinstance(given, Tensor) else type(given).__name__
    if got not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be integers (int64 or int32), got {got}")


def check_range(name: str, given: Tensor, count: int, what: str) -> None:
    # on an accelerator or in a compiled graph the look would cost a wait, or break the graph
    if given.device.type == "cpu" and not torch.compiler.is_compiling() and given.numel():
        low, high = (int(end) for end in torch.aminmax(given))
        if low < 0 or high >= count:
            raise ValueError(f"{name} must lie in 0 .. {count - 1} ({what}), got {low} .. {high}")


def check_lengths(name: str, lengths: Tensor | None, batch: int) -> None:
    """Raise unless lengths, where given, are one whole number for each entry of the batch."""
    if lengths is None:
        return
    check_integers(name, lengths)
    if lengths.shape != (batch,):
        raise ValueError(
            f"{name} must have one number for each of the {batch} entries of the batch, got shape "
            f"{tuple(lengths.shape)}"
        )
