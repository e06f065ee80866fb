"""Memory linear in length: no observer but the whole matrix ever makes a tensor of q_len x k_len."""

from __future__ import annotations

import dense_observations as dense
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headwise.kernels import measure as measuring
from headwise.kernels.measure import measure
from headwise.masks import Causal, Window
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Offset,
    Spread,
    TopKeys,
    Weights,
)

EVERY = [
    Entropy(),
    LogSumExp(),
    Distance(),
    Spread(),
    KeyMass(),
    TopKeys(4),
    MaxWeight(),
    Map(16),
    Offset(-1),
    Mass([0]),
]


class Largest(TorchDispatchMode):
    """The largest tensor that any operation makes, and how many numbers come out of all products."""

    def __init__(self):
        super().__init__()
        self.bytes = 0
        self.operation = ""
        self.products = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and not func.is_view:
                size = leaf.untyped_storage().nbytes()
                if size > self.bytes:
                    self.bytes, self.operation = size, str(func)
                if func.overloadpacket in (torch.ops.aten.bmm, torch.ops.aten.mm):
                    self.products += leaf.numel()
        return result


LENGTH = 8192


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(None, marks=pytest.mark.slow, id="full"),
        pytest.param(Causal(), id="causal"),
        pytest.param(Causal() & Window(before=100, after=0), id="window"),
    ],
)
def test_no_tensor_of_the_matrix_at_length_8192(mask):
    p = dense.as_float32(dense.problem((1,), 1, 1, LENGTH, LENGTH, d_k=4, mask=mask))
    with Largest() as largest:
        measure(p, EVERY)
    # 8192 x 8192 is 256 MiB in float32, and 64 MiB as booleans
    assert largest.bytes <= 8 * 2**20, largest.operation


def test_blocks_hold_few_rows_where_nothing_is_masked():
    p = dense.as_float32(dense.problem((1,), 4, 1, 2048, 2048, d_k=4))
    with Largest() as largest:
        measure(p, [Entropy(), KeyMass()])
    assert largest.bytes <= 8 * 2**20, largest.operation  # the matrix: 64 MiB


def test_nor_with_gradients():
    p = dense.as_float32(dense.problem((1,), 2, 1, 2048, 2048, d_k=4, mask=Causal()))
    p.q.requires_grad_()
    kept = []

    def pack(tensor):
        kept.append(tensor.untyped_storage().nbytes())
        return tensor

    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            seen = measure(p, EVERY)
            loss = (
                seen.entropy.sum()
                + seen.key_mass.square().sum()
                + seen.map.square().sum()
                + seen.distance.sum()
            )
        loss.backward()
    assert largest.bytes <= 8 * 2**20, largest.operation  # the matrix: 32 MiB
    assert max(kept) < 2**20  # what waits for the backward pass is no block of scores


@pytest.mark.parametrize("q_len", [1, 3])
def test_one_row_of_very_many_keys(q_len, monkeypatch):
    """Where one row of all heads is above the budget, heads are taken apart."""
    monkeypatch.setattr(measuring, "CPU_BLOCK", 2**16)
    p = dense.as_float32(dense.problem((1,), 6, 2, q_len, 16384, d_k=4))
    with Largest() as largest:
        seen = measure(p, [Entropy(), MaxWeight()])
    assert largest.bytes <= 4 * 2**16, largest.operation
    torch.testing.assert_close(
        seen.entropy.double(), torch.special.entr(dense.weights(p)).sum(-1), rtol=1e-4, atol=1e-5
    )


def test_chosen_rows_and_heads_cost_only_themselves():
    """transformers#22469: asking for one row of one head computes one row of one head."""
    p = dense.as_float32(dense.problem((1,), 6, 2, 1021, 1021, d_k=4, mask=Causal()))
    with Largest() as largest:
        seen = measure(p, [Weights(rows=(-1, 3), heads=(4,)), Entropy(rows=(-1, 3), heads=(4,))])
    assert largest.products == 2 * 1021  # one pass for both observers
    assert largest.bytes <= 8 * 4 * 1021  # a few rows; the matrix of one head is 1021 rows
    torch.testing.assert_close(seen.weights.double(), dense.weights(p)[:, 4:5, (-1, 3)], rtol=1e-4, atol=1e-6)


def test_windows_cost_the_window():
    p = dense.as_float32(
        dense.problem((1,), 1, 1, 4096, 4096, d_k=4, mask=Causal() & Window(before=64, after=0))
    )
    with Largest() as largest:
        measure(p, [Entropy()])
    assert largest.products <= 4096 * 64 * 4  # 4096 x 4096 would be 16 times as many


def test_the_weights_are_held_once():
    p = dense.as_float32(dense.problem((1,), 2, 1, 2048, 2048, d_k=4))
    with Largest() as largest:
        seen = measure(p, [Weights()])
    assert largest.bytes == seen.weights.untyped_storage().nbytes() == 2 * 2048 * 2048 * 4


def test_keys_are_never_copied_for_grouped_heads():
    """6 query heads share 2 key heads: nothing as large as 6 heads of keys appears."""
    p = dense.as_float32(dense.problem((1,), 6, 2, 8, 4096, d_k=64))
    with Largest() as largest:
        measure(p, [Entropy()])
    assert largest.bytes < 2 * 4096 * 64 * 4
