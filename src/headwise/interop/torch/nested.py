"""Nested tensors (batches of unequal lengths) to padded ones and back."""

from __future__ import annotations

import torch
from torch import Tensor


def to_padded(nested: Tensor) -> tuple[Tensor, Tensor]:
    """A nested tensor [batch, lengths, width] as (padded [batch, longest, width], bool [batch, longest],
    True where an entry is real)."""
    parts = nested.unbind()
    padded = torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
    lengths = torch.tensor([part.shape[0] for part in parts], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


def from_padded(padded: Tensor, *, like: Tensor) -> Tensor:
    """The real entries of a padded tensor, nested as `like` is (same layout, same lengths)."""
    rows = [row[: part.shape[0]] for row, part in zip(padded, like.unbind(), strict=True)]
    if like.layout == torch.jagged:
        values = torch.cat(rows)
        # the offsets object of `like` itself: that is how torch knows that two nested lengths are equal
        offsets: Tensor = like.offsets()  # type: ignore[attr-defined]
        return torch.nested.nested_tensor_from_jagged(values, offsets)
    return torch.nested.as_nested_tensor(rows)
