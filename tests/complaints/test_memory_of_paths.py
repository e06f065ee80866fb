"""Complaints about paths whose memory grows with q_len x k_len (pytorch#101531, pytorch#133458)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from memory_watch import MemoryWatch
from torch import Tensor

from headwise import Causal, KeyLengths, attention

LENGTH = 1024
MATRIX = LENGTH * LENGTH * 4  # bytes of one head's scores


def drawn(*batch: int, d_v: int = 13, kv_heads: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q = torch.randn(*batch, 4, LENGTH, 13)
    k, v = (torch.randn(*batch, kv_heads, LENGTH, d) for d in (13, d_v))
    return q, k, v


def test_101531_causal_with_padding_needs_no_dense_mask() -> None:
    """pytorch#101531: causal masks and padding together were refused, so a dense [batch, 1, q, k] mask
    had to be made."""
    q, k, v = drawn(2)
    lengths = torch.tensor([LENGTH, 617])
    mask = Causal() & KeyLengths(lengths)
    with MemoryWatch() as watch:
        out = attention(q, k, v, mask=mask, strict=True)
    assert watch.largest < 2 * MATRIX  # of the 8 that the scores would take; a strip of 256 rows takes 1
    dense = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril() & (
        torch.arange(LENGTH) < lengths[:, None, None]
    )
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=dense.unsqueeze(1))
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("batch", "d_v", "kv_heads", "options"),
    [
        ((1,), 26, 4, {}),
        ((1,), 13, 4, {"dropout": 0.1}),
        ((1, 1), 13, 4, {}),
        ((1,), 13, 2, {"mask": Causal() & KeyLengths(617)}),
    ],
    ids=["d_v of 2 d_k", "dropout", "five dimensions", "grouped heads with a mask"],
)
def test_133458_no_option_brings_the_whole_matrix(
    batch: tuple[int, ...], d_v: int, kv_heads: int, options: dict[str, Any]
) -> None:
    """pytorch#133458: on a CPU, each of these falls to a path that holds every score, forward and
    backward."""
    inputs = [t.requires_grad_() for t in drawn(*batch, d_v=d_v, kv_heads=kv_heads)]
    with MemoryWatch() as watch:
        attention(*inputs, strict=True, **options).sum().backward()
    assert watch.largest <= MATRIX  # of the 4 that the scores would take
    assert all(t.grad is not None and t.grad.isfinite().all() for t in inputs)
