"""`torch.export` with free batch and length, observed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headwise as hw
from headwise.observers import Observer


class Observed(nn.Module):
    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer
        self.layer = hw.MultiHeadAttention(13, 3, d_k=5, d_v=7)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Any]:
        y, seen = self.layer(x, mask=hw.Causal() & hw.KeyLengths(lengths), observe=[self.observer])
        found = seen[self.observer.name]
        return y, found if isinstance(found, Tensor) else tuple(found)


@pytest.mark.parametrize(
    "observer",
    [
        hw.Weights(),
        hw.Entropy(),
        hw.Distance(),
        hw.Spread(),
        hw.MaxWeight(),
        hw.KeyMass(),
        hw.LogSumExp(),
        hw.Offset(-1),
    ],
    ids=lambda one: one.name,
)
def test_exported_with_free_batch_and_length(observer: Observer) -> None:
    torch.manual_seed(0)
    model = Observed(observer).eval()
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=300)
    exported = torch.export.export(
        model,
        (torch.randn(4, 11, 13), torch.tensor([11, 5, 2, 1])),
        dynamic_shapes=({0: batch, 1: length}, {0: batch}),
    )
    x, lengths = torch.randn(3, 29, 13), torch.tensor([29, 3, 17])
    torch.testing.assert_close(exported.module()(x, lengths), model(x, lengths), rtol=1e-4, atol=1e-5)
