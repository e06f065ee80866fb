"""Public complaints about weights and statistics of attention; each test cites its thread."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import headwise as hw

KERNELS = ["reference", "tiled", "torch", "auto"]


class Largest(TorchDispatchMode):
    """Numbers in the largest tensor that any operation makes."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, torch.Tensor) and not func.is_view:
                self.numbers = max(self.numbers, part.untyped_storage().nbytes() // part.element_size())
        return result


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def inputs(batch=2, heads=4, length=67, d_k=8, dtype=torch.float32):
    return [normal(batch, heads, length, d_k, seed=seed, dtype=dtype) for seed in range(3)]


def softmax_reference(q, k, *, causal=True):
    s = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:]).tril().bool(), float("-inf"))
    return s, s.softmax(-1)


# 24. Weights out of fused attention: pytorch#119811, flash-attention#159, flash-attention#589,
# transformers#33996, transformers#36096, TransformerEngine#579


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_gives_its_weights(kernel):
    q, k, v = inputs()
    y, seen = hw.attention(q, k, v, mask=hw.Causal(), kernel=kernel, observe=[hw.Weights()])
    _, expected = softmax_reference(q, k)
    torch.testing.assert_close(seen.weights.double(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(seen.weights @ v, y, rtol=1e-5, atol=1e-5)
    assert seen.row_sum_of == "kernel"
    assert seen.row_sum_error < 1e-5
    assert torch.equal(y, hw.attention(q, k, v, mask=hw.Causal(), kernel=kernel))


def test_weights_are_there_whatever_the_layer_uses():
    """transformers#36096, chatterbox#339: `attentions` came back empty when a model went fused."""
    layer = hw.MultiHeadAttention(12, 3).eval()
    with torch.no_grad(), hw.observe(layer, hw.Weights()) as seen:
        layer(normal(2, 7, 12))
    torch.testing.assert_close(seen[""].weights.sum(-1), torch.ones(2, 3, 7))


# 25. need_weights=True by default disables the fused kernel: RT-DETR#678, flash-attention#529, pytorch#99878


def test_the_default_returns_a_tensor_and_never_makes_weights():
    length = 2048
    q, k, v = inputs(1, 2, length, 8)
    with Largest() as largest:
        y = hw.attention(q, k, v, mask=hw.Causal())
    assert isinstance(y, torch.Tensor)
    assert largest.numbers < length * length / 2
    layer = hw.MultiHeadAttention(16, 2)
    with Largest() as largest:
        y = layer(normal(1, length, 16))
    assert isinstance(y, torch.Tensor)
    assert largest.numbers < length * length / 2


# 26. output_attentions keeps layers x batch x heads x length^2: transformers#22469, transformers#9387,
# transformers#43213


def test_chosen_layers_heads_and_rows_cost_only_these():
    length = 1021
    model = nn.Sequential(*(hw.MultiHeadAttention(12, 3) for _ in range(3)))
    x = normal(2, length, 12)
    observed = hw.Weights(rows=(-1,), heads=(2,))
    with torch.no_grad(), Largest() as largest, hw.observe(model, observed, layers=[1]) as seen:
        model(x)
    assert list(seen) == ["1"]
    assert seen["1"].weights.shape == (2, 1, 1, length)
    assert largest.numbers < length * length


# 27. Weights after dropout: pytorch#42929, pytorch#33360, pytorch#90842, fairseq#351


def test_weights_are_those_before_dropout():
    """The case of pytorch#42929: one key, dropout 0.2, weights of 1.25 instead of 1."""
    layer = hw.MultiHeadAttention(5, 1, dropout=0.2).train()
    query, key = normal(3, 3, 5), normal(3, 1, 5, seed=1)
    for _ in range(5):
        y, seen = layer(query, key, observe=[hw.Weights()])
        assert y.shape == (3, 3, 5)
        assert torch.equal(seen.weights, torch.ones(3, 1, 3, 1))


@pytest.mark.parametrize("kernel", ["reference", "tiled"])
def test_rows_sum_to_one_under_dropout(kernel):
    q, k, v = inputs()
    kept = hw.attention(q, k, v, kernel=kernel, observe=[hw.Weights()])[1].weights
    y, seen = hw.attention(q, k, v, kernel=kernel, dropout=0.5, observe=[hw.Weights()])
    assert torch.equal(seen.weights, kept)
    assert not torch.allclose(seen.weights @ v, y)  # dropout did happen


# 28. Weights per head, and out of an encoder: pytorch#34537, pytorch#47583, pytorch#88810, pytorch#99304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.attention = hw.MultiHeadAttention(12, 3)

    def forward(self, x):
        return x + self.attention(self.norm(x))


def test_weights_per_head_come_out_of_nested_modules():
    model = nn.ModuleDict({"encoder": nn.Sequential(*(Block() for _ in range(2)))})
    with hw.observe(model, hw.Weights()) as seen:
        model["encoder"](normal(2, 7, 12))
    assert list(seen) == ["encoder.0.attention", "encoder.1.attention"]
    for weights in (seen["encoder.0"].weights, seen["encoder.1"].weights):
        assert weights.shape == (2, 3, 7, 7)
        assert not torch.allclose(weights[:, 0], weights[:, 1])  # not an average repeated


# 29. Statistics without the matrix: pytorch#159770 (max logit for QK-clip), pytorch#176837, keys_values#30,
# flash-attention#1876, flash-attention#2357, torchtitan#4243, eole#250


def test_statistics_of_fused_attention():
    q, k, v = inputs(1, 4, 509)
    s, w = softmax_reference(q, k)
    _, seen = hw.attention(
        q,
        k,
        v,
        mask=hw.Causal(),
        observe=[hw.Entropy(), hw.KeyMass(), hw.TopKeys(5), hw.MaxWeight(), hw.LogSumExp()],
    )
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(seen.entropy.double(), torch.special.entr(w).sum(-1), **close)
    torch.testing.assert_close(seen.key_mass.double(), w.sum(-2), **close)
    top = w.sort(-1, descending=True).values[..., :5]
    torch.testing.assert_close(seen.top_keys.weights.double(), top, **close)
    found = w.gather(-1, seen.top_keys.indices.clamp(min=0))
    torch.testing.assert_close(found.masked_fill(seen.top_keys.indices < 0, 0), top, **close)
    # max logit, as QK-clip wants it: P_max = exp(s_max - lse)
    max_logit = seen.log_sum_exp + seen.max_weight.value.log()
    torch.testing.assert_close(max_logit.double(), s.amax(-1), **close)


def test_statistics_take_part_in_a_loss():
    """An entropy penalty trains the projections (keys_values#77, eole#250)."""
    q, k, v = (t.requires_grad_() for t in inputs(1, 2, 11, 3, torch.float64))

    def penalty(q, k):
        _, seen = hw.attention(
            q, k, v, mask=hw.Causal(), observe=[hw.Entropy(), hw.KeyMass(), hw.MaxWeight(), hw.LogSumExp()]
        )
        return seen.entropy, seen.key_mass, seen.max_weight.value, seen.log_sum_exp

    assert torch.autograd.gradcheck(penalty, (q, k), fast_mode=True)


def test_statistics_never_make_the_matrix():
    length = 2048
    q, k, v = inputs(1, 2, length)
    statistics = [hw.Entropy(), hw.KeyMass(), hw.TopKeys(5), hw.MaxWeight(), hw.LogSumExp(), hw.Map(16)]
    with Largest() as largest:
        hw.attention(q, k, v, mask=hw.Causal(), observe=statistics)
    assert largest.numbers < length * length / 2
