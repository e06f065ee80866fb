"""Public complaints about torch.nn.MultiheadAttention, each on the drop-in and on headwise's layer.

Every test names its thread, takes the thread's smallest case, and asserts what must hold here.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.interop.torch import MultiheadAttention, from_torch, replace_torch_attention
from headwise.masks import Allow, Causal, KeyLengths, Window
from headwise.models import Encoder
from headwise.multihead import MultiHeadAttention
from headwise.observers import Weights
from headwise.recorder import observe

MODES = [(training, grad) for training in (True, False) for grad in (True, False)]


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    """With every parameter away from 0, biases too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).to(parameter) / 2)
    return module


# pytorch#41508: one query that may attend to nothing poisons all gradients


def band_and_padding() -> tuple[Tensor, Tensor, Tensor]:
    """The thread's case: 4 tokens, 2 texts, the second of length 2; each query sees itself and the one
    before. The second text's last query sees keys 2 and 3, both padding."""
    x = torch.linspace(-1, 1, 8, dtype=torch.float64).view(4, 2, 1)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    at = torch.arange(4)
    outside = (at[None] > at[:, None]) | (at[None] < at[:, None] - 1)
    return x, padding, outside


def gradients(module: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(module.parameters())))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("as_float", [True, False])
def test_41508_dead_row_in_the_drop_in(need_weights: bool, as_float: bool) -> None:
    """https://github.com/pytorch/pytorch/issues/41508"""
    x, padding, outside = band_and_padding()
    attn_mask = torch.zeros(4, 4).masked_fill(outside, float("-inf")).double() if as_float else outside
    pad_mask = torch.zeros(2, 4).masked_fill(padding, float("-inf")).double() if as_float else padding
    module = filled(MultiheadAttention(1, 1).double())
    how = {"need_weights": need_weights}
    out, weights = module(x, x, x, key_padding_mask=pad_mask, attn_mask=attn_mask, **how)
    assert torch.equal(out[3, 1], module.out_proj.bias)  # 0 from the head, then b_out
    if weights is not None:
        assert torch.equal(weights[1, 3], torch.zeros(4, dtype=torch.float64))
    got = gradients(module, out[:2].square().sum())
    without, _ = module(x[:3], x, x, key_padding_mask=pad_mask, attn_mask=attn_mask[:3], **how)
    wanted = gradients(module, without[:2].square().sum())
    for one, other in zip(got, wanted, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_41508_dead_row_in_the_layer() -> None:
    """https://github.com/pytorch/pytorch/issues/41508"""
    x, padding, _ = band_and_padding()
    x = x.transpose(0, 1)
    layer = filled(MultiHeadAttention(1, 1, projection_bias=True).double())
    mask = Window(before=1, after=0) & KeyLengths((~padding).sum(1))
    out = layer(x, mask=mask)
    assert torch.equal(out[1, 3], layer.out_proj.bias)
    got = gradients(layer, out[:, :2].square().sum())
    without = layer(x[:, :3], x, mask=mask, align="start")
    wanted = gradients(layer, without[:, :2].square().sum())
    for one, other in zip(got, wanted, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


# pytorch#152028: masks with dropout give NaN


@pytest.mark.parametrize("need_weights", [True, False])
def test_152028_masks_with_dropout(need_weights: bool) -> None:
    """https://github.com/pytorch/pytorch/issues/152028: MHA(8, 2, dropout=.5, bias=False), q (2, 3, 8),
    k (2, 4, 8), one text all padding."""
    torch.manual_seed(0)
    module = MultiheadAttention(8, 2, dropout=0.5, bias=False, batch_first=True).train()
    q, k = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 4, 8, requires_grad=True)
    padding = torch.tensor([[False, False, True, True], [True] * 4])
    attn_mask = torch.tensor([[False, True, False, False]] * 3)
    out, weights = module(q, k, k, key_padding_mask=padding, attn_mask=attn_mask, need_weights=need_weights)
    assert torch.equal(out[1], torch.zeros(3, 8))
    assert out[0].abs().sum() > 0
    if weights is not None:
        assert torch.equal(weights.sum(-1).round(decimals=5), torch.tensor([[1.0] * 3, [0.0] * 3]))
    out.square().sum().backward()
    for tensor in (q, k, *module.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    assert not q.grad[1].any()
    assert not k.grad[1].any()

    layer = from_torch(module)
    y = layer(q, k, mask=Allow(~padding[:, None, None, :]) & Allow(~attn_mask))
    assert torch.equal(y[1], torch.zeros(3, 8))
    assert all(g.isfinite().all() for g in gradients(layer, y.square().sum()))


# pytorch PR#190486: the encoder's fused path gives NaN where the other gives numbers


def test_190486_band_and_padding_in_every_mode() -> None:
    """https://github.com/pytorch/pytorch/pull/190486: TransformerEncoder, 16 tokens, a band of width 4,
    the last 12 padded, so that most queries may attend to nothing."""
    length, width = 16, 4
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    replace_torch_attention(model)
    at = torch.arange(length)
    outside = (at[None] - at[:, None]).abs() > width
    padding = (at >= 4).expand(3, length)
    x = torch.randn(3, length, 8)
    assert (outside | padding[:1]).all(-1).any()
    outputs = []
    for training, grad in MODES:
        with torch.set_grad_enabled(grad):
            outputs.append(model.train(training)(x, mask=outside, src_key_padding_mask=padding).detach())
    for output in outputs:
        assert output.isfinite().all()
        assert torch.equal(output, outputs[0])

    encoder = Encoder.build(2, 8, 2, 16, dropout=0.0)
    mask = Window(before=width, after=width) & KeyLengths(torch.tensor([4, 4, 4]))
    outputs = []
    for training, grad in MODES:
        with torch.set_grad_enabled(grad):
            outputs.append(encoder.train(training)(x, mask=mask).detach())
    for output in outputs:
        assert output.isfinite().all()
        assert torch.equal(output, outputs[0])


# pytorch#103749, #110213, #103963: what a row of nothing gives depends on version and backend


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("written", ["bool", "-inf", "finfo.min"])
def test_103749_one_meaning_of_a_hidden_row(need_weights: bool, training: bool, written: str) -> None:
    """https://github.com/pytorch/pytorch/issues/103749, /110213, /103963: a row of True and a row of -inf
    hide everything and give 0; finfo.min is only a large number and gives the mean of the values."""
    module = filled(MultiheadAttention(6, 2, batch_first=True)).train(training)
    x = torch.linspace(-1, 1, 30).view(1, 5, 6)
    hidden = torch.zeros(5, 5, dtype=torch.bool)
    hidden[2] = True
    number = torch.finfo(torch.float32).min if written == "finfo.min" else float("-inf")
    mask = hidden if written == "bool" else torch.zeros(5, 5).masked_fill(hidden, number)
    out, weights = module(x, x, x, attn_mask=mask, need_weights=need_weights)
    if written == "finfo.min":
        mean = torch.nn.functional.linear(x, module.v_proj_weight, module.in_proj_bias[12:]).mean(1)
        torch.testing.assert_close(out[0, 2], module.out_proj(mean)[0], rtol=1e-5, atol=1e-6)
    else:
        assert torch.equal(out[0, 2], module.out_proj.bias)
    if weights is not None:
        row = torch.full((5,), 0.2 if written == "finfo.min" else 0.0)
        torch.testing.assert_close(weights[0, 2], row)


@pytest.mark.parametrize("kernel", ["reference", "tiled", "auto"])
def test_103749_in_every_kernel_of_the_layer(kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/103749, /110213, /103963"""
    layer = filled(MultiHeadAttention(6, 2, kernel=kernel))
    x = torch.linspace(-1, 1, 30).view(1, 5, 6)
    hidden = torch.zeros(5, 5, dtype=torch.bool)
    hidden[2] = True
    by_mask = layer(x, mask=Allow(~hidden))
    by_bias = layer(x, bias=torch.zeros(5, 5).masked_fill(hidden, float("-inf")))
    assert torch.equal(by_mask[0, 2], torch.zeros(6))
    assert torch.equal(by_bias[0, 2], torch.zeros(6))
    torch.testing.assert_close(by_mask, by_bias)
    large = layer(x, bias=torch.zeros(5, 5).masked_fill(hidden, torch.finfo(torch.float32).min))
    torch.testing.assert_close(large[0, 2], layer.out_proj(layer.v_proj(x).mean(1))[0], rtol=1e-5, atol=1e-6)


# pytorch#170400, #120668, #21518: True means ignore here and attend there; 0/1 masks are added in silence


def test_170400_masks_say_what_they_mean() -> None:
    """https://github.com/pytorch/pytorch/issues/170400, /120668, /21518"""
    layer = MultiHeadAttention(6, 2)
    x = torch.randn(2, 5, 6)
    zero_one = torch.ones(5, 5).tril()
    for wrong in (zero_one, zero_one.long(), zero_one.bool()):
        with pytest.raises(
            TypeError, match="Allow"
        ):  # no tensor is a mask without a word that says its sense
            layer(x, mask=wrong)  # type: ignore[arg-type]
    for wrong in (zero_one, zero_one.long(), zero_one.to(torch.uint8)):
        with pytest.raises(TypeError, match="bool"):
            Allow(wrong)
    with pytest.raises(ValueError, match="only 0 and 1"):
        layer(x, bias=zero_one)
    torch.testing.assert_close(layer(x, mask=Allow(zero_one.bool())), layer(x, mask=Causal()))

    module = MultiheadAttention(6, 2, batch_first=True)
    with pytest.warns(UserWarning, match="only 0 and 1"):  # torch adds such a mask; so must its stand-in
        module(x, x, x, attn_mask=zero_one)
    with pytest.raises(AssertionError, match="bool and floating"):
        module(x, x, x, attn_mask=zero_one.long())
    torch.testing.assert_close(
        module(x, x, x, attn_mask=~zero_one.bool())[0], from_torch(module)(x, mask=Allow(zero_one.bool()))
    )


# pytorch#107084, #118628: a float mask taken for a boolean one on the fast path


def test_107084_float_masks_are_numbers_in_every_mode() -> None:
    """https://github.com/pytorch/pytorch/issues/107084, /118628: x (1, 10, 256), 8 heads, a randn mask."""
    torch.manual_seed(0)
    module = MultiheadAttention(256, 8, batch_first=True)
    x, bias = torch.randn(1, 10, 256), torch.randn(10, 10)
    outputs = []
    for training, grad in MODES:
        for need_weights in (True, False):
            with torch.set_grad_enabled(grad):
                out, _ = module.train(training)(x, x, x, attn_mask=bias, need_weights=need_weights)
                outputs.append(out.detach())
    for output in outputs:
        assert torch.equal(output, outputs[0])
    per_head = bias.expand(8, 10, 10).contiguous()
    torch.testing.assert_close(module(x, x, x, attn_mask=per_head)[0], outputs[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(from_torch(module)(x, bias=bias), outputs[0], rtol=1e-5, atol=1e-6)


# pytorch#97111: the encoder's output is cut, or 0, where padded, in eval mode only


def test_97111_padded_output_has_one_shape_and_one_value() -> None:
    """https://github.com/pytorch/pytorch/issues/97111: x (2000, 6, 256), the last 5 columns padded. Padded
    queries are computed like any other (their keys are hidden from all): the same in every mode."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 4, 64, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 1)
    replace_torch_attention(model)
    x = torch.randn(2000, 6, 256)
    padding = (torch.arange(6) > 0).expand(2000, 6)
    outputs = []
    for training, grad in MODES:
        with torch.set_grad_enabled(grad):
            outputs.append(model.train(training)(x, src_key_padding_mask=padding).detach())
    for output in outputs:
        assert output.shape == x.shape
        assert torch.equal(output, outputs[0])
        assert (output.abs().sum(-1) > 0).all()

    encoder = Encoder.build(1, 256, 4, 64, dropout=0.0)
    lengths = torch.ones(2000, dtype=torch.int64)
    with torch.no_grad():
        train, evaluated = (encoder.train(mode)(x, mask=KeyLengths(lengths)) for mode in (True, False))
    assert train.shape == x.shape
    assert torch.equal(train, evaluated)


# pytorch#34537, #47583, #88810, #99304: weights of each head, and out of an encoder


def test_34537_weights_of_each_head() -> None:
    """https://github.com/pytorch/pytorch/issues/34537, /47583, /88810, /99304: torch averages over heads
    unless told otherwise, and its encoder asks for no weights at all."""
    torch.manual_seed(0)
    x = torch.randn(2, 5, 6)
    layer = MultiHeadAttention(6, 2)
    _, seen = layer(x, observe=[Weights()])
    q, k = (proj(x).view(2, 5, 2, 3).transpose(1, 2) for proj in (layer.q_proj, layer.k_proj))
    expected = (q @ k.mT / 3**0.5).softmax(-1)  # [2, 2 heads, 5, 5]
    torch.testing.assert_close(seen.weights, expected)

    module = MultiheadAttention(6, 2, batch_first=True)
    each = module(x, x, x, average_attn_weights=False)[1]
    mean = module(x, x, x)[1]
    assert each.shape == (2, 2, 5, 5)
    torch.testing.assert_close(each.mean(1), mean)  # torch's default, kept in its stand-in


def test_47583_weights_out_of_an_encoder() -> None:
    """https://github.com/pytorch/pytorch/issues/47583, /99304"""
    encoder = Encoder.build(3, 6, 2, 11).eval()
    x = torch.randn(2, 5, 6)
    before = encoder(x)
    with observe(encoder, Weights()) as seen:
        during = encoder(x)
    assert torch.equal(before, during)
    for n in range(3):
        weights = seen[f"layers.{n}.self_attention"].weights
        assert weights.shape == (2, 2, 5, 5)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))


def test_99304_weights_out_of_torchs_encoder() -> None:
    """https://github.com/pytorch/pytorch/issues/99304"""
    layer = nn.TransformerEncoderLayer(6, 2, 11, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    replace_torch_attention(model)
    x = torch.randn(2, 5, 6)
    with torch.no_grad(), observe(model, Weights()) as seen:
        model(x)
    for n in range(3):
        weights = seen[f"layers.{n}.self_attn"].weights
        assert weights.shape == (2, 2, 5, 5)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))


# pytorch#99282, #118972, #172338: is_causal is a hint that some paths drop


@pytest.mark.parametrize(("training", "grad"), MODES)
@pytest.mark.parametrize("how", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_99282_the_future_does_not_move_the_past(
    training: bool, grad: bool, how: dict[str, Any], padded: bool
) -> None:
    """https://github.com/pytorch/pytorch/issues/99282, /118972, /172338: in eval mode torch's fast path
    ignores is_causal. Here the future is hidden in every mode."""
    module = filled(MultiheadAttention(6, 2, batch_first=True)).train(training)
    x = torch.linspace(-1, 1, 42).view(1, 7, 6).sin()
    later = torch.cat([x[:, :4], x[:, 4:] + 1], dim=1)
    how = how | {"attn_mask": nn.Transformer.generate_square_subsequent_mask(7), "is_causal": True}
    if padded:
        how["key_padding_mask"] = torch.zeros(1, 7).masked_fill(torch.arange(7) == 1, float("-inf"))
    with torch.set_grad_enabled(grad):
        before, after = module(x, x, x, **how)[0], module(later, later, later, **how)[0]
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])

    layer = from_torch(module)
    with torch.set_grad_enabled(grad):
        before, after = layer(x, mask=Causal()), layer(later, mask=Causal())
    assert torch.equal(before[:, :4], after[:, :4])


# pytorch#42929, #33360, #90842: returned weights are those after dropout


def test_42929_weights_sum_to_one_in_training() -> None:
    """https://github.com/pytorch/pytorch/issues/42929: q (3, 3, 5), k (3, 1, 5), dropout .2; torch returns
    1.25 for the only key."""
    torch.manual_seed(0)
    module = MultiheadAttention(5, 1, dropout=0.2, batch_first=True).train()
    _, weights = module(torch.randn(3, 3, 5), *[torch.randn(3, 1, 5)] * 2)
    assert torch.equal(weights, torch.ones(3, 3, 1))
