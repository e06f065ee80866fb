"""Putting headwise's attention into models that were built with torch's."""

from __future__ import annotations

import copy
import warnings
from unittest import mock

import pytest
import torch
from torch import nn

from headwise.interop.torch import MultiheadAttention, replace_torch_attention

WIDTH, HEADS, BATCH, LENGTH, INNER = 8, 2, 3, 7, 11


def encoder(
    *, dropout: float = 0.0, norm_first: bool = False, batch_first: bool = True
) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, dropout=dropout, batch_first=batch_first, norm_first=norm_first
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns where it can't use nested tensors
        return nn.TransformerEncoder(layer, 2)


class Nested(nn.Module):
    """Attention in a list, a dict, twice the same module, and in a whole transformer."""

    def __init__(self) -> None:
        super().__init__()
        shared = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.list = nn.ModuleList(
            [shared, nn.ModuleDict({"deep": nn.MultiheadAttention(WIDTH, HEADS, kdim=5)})]
        )
        self.again = shared
        self.whole = nn.Transformer(WIDTH, HEADS, 1, 1, INNER, batch_first=True, dropout=0.0)


def test_every_attention_is_replaced_in_place() -> None:
    model = Nested()
    parameters = dict(model.named_parameters())
    shared = model.again
    names = replace_torch_attention(model)
    assert names == [
        "list.0",
        "list.1.deep",
        "whole.encoder.layers.0.self_attn",
        "whole.decoder.layers.0.self_attn",
        "whole.decoder.layers.0.multihead_attn",
    ]
    assert all(type(model.get_submodule(name)) is MultiheadAttention for name in names)
    assert not any(type(module) is nn.MultiheadAttention for module in model.modules())
    assert model.again is model.list[0] is shared
    assert all(parameters[name] is parameter for name, parameter in model.named_parameters())
    assert replace_torch_attention(model) == []


def test_the_model_itself_can_be_one() -> None:
    module = nn.MultiheadAttention(WIDTH, HEADS)
    assert replace_torch_attention(module) == [""]
    assert type(module) is MultiheadAttention
    assert replace_torch_attention(nn.Linear(2, 2)) == []


def test_hooks_and_mode_are_kept() -> None:
    model = nn.Sequential(nn.MultiheadAttention(WIDTH, HEADS)).eval()
    calls: list[int] = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    replace_torch_attention(model)
    x = torch.randn(LENGTH, BATCH, WIDTH)
    model[0](x, x, x)
    assert calls == [1]
    assert not model[0].training


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_equal_numbers_in_every_mode(norm_first: bool, batch_first: bool, mask: str) -> None:
    theirs = encoder(norm_first=norm_first, batch_first=batch_first)
    ours = copy.deepcopy(theirs)
    replace_torch_attention(ours)
    x = torch.randn(BATCH, LENGTH, WIDTH) if batch_first else torch.randn(LENGTH, BATCH, WIDTH)
    real = torch.arange(LENGTH) < torch.tensor([[3], [7], [5]])
    how = {
        "none": {},
        "causal": {"mask": nn.Transformer.generate_square_subsequent_mask(LENGTH), "is_causal": True},
        "padding": {"src_key_padding_mask": ~real},
    }[mask]
    # padded queries: torch gives 0 in eval mode and numbers in train mode, so only real ones are compared
    rows = real if mask == "padding" else torch.ones_like(real)
    rows = rows if batch_first else rows.T
    outputs = []
    for model, training, grad in [
        (theirs, True, True),
        (theirs, False, False),
        (ours, True, True),
        (ours, True, False),
        (ours, False, True),
        (ours, False, False),
    ]:
        model.train(training)
        with torch.set_grad_enabled(grad):
            outputs.append(model(x, **how).detach())
    for output in outputs[1:]:
        torch.testing.assert_close(output[rows], outputs[0][rows], rtol=1e-5, atol=1e-5)
    for output in outputs[3:]:
        torch.testing.assert_close(output, outputs[2], rtol=1e-6, atol=1e-6)  # padded ones too


def test_torchs_fused_kernels_are_not_taken() -> None:
    """torch's encoder reads the weights of self_attn and calls a kernel of its own in eval mode."""
    theirs, x = encoder().eval(), torch.randn(BATCH, LENGTH, WIDTH)
    ours = copy.deepcopy(theirs)
    replace_torch_attention(ours)
    by_hand = encoder().eval()
    for layer in by_hand.layers:
        layer.self_attn = MultiheadAttention(WIDTH, HEADS, batch_first=True)
    padding = torch.arange(LENGTH) >= torch.tensor([[3], [7], [5]])
    fused = "torch._transformer_encoder_layer_fwd"
    with torch.no_grad():
        with (
            mock.patch(fused, side_effect=RuntimeError("fused kernel")),
            pytest.raises(RuntimeError, match="fused"),
        ):
            theirs(x)  # so this test would notice
        for model in (ours, by_hand.eval()):
            calls: list[int] = []
            for layer in model.layers:
                layer.self_attn.attention_hooks.append(lambda *_, calls=calls: calls.append(1))
            with mock.patch(fused, side_effect=RuntimeError("fused kernel")):
                model(x)
                model(x, src_key_padding_mask=padding)
            assert len(calls) == 4  # two layers, two calls


def test_encoder_around_the_drop_in_keeps_padded_tensors() -> None:
    layer = encoder().layers[0]
    layer.self_attn = MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with pytest.warns(UserWarning, match="use_nested_tensor is False"):
        built = nn.TransformerEncoder(layer, 1)
    assert not built.use_nested_tensor


def test_training_goes_on_with_the_same_optimiser() -> None:
    model = encoder()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    replace_torch_attention(model)
    before = model.layers[0].self_attn.in_proj_weight.detach().clone()
    model(torch.randn(BATCH, LENGTH, WIDTH)).square().sum().backward()
    optimiser.step()
    assert not torch.equal(model.layers[0].self_attn.in_proj_weight, before)


def test_subclasses_are_left_alone_and_named() -> None:
    class Own(nn.MultiheadAttention):
        pass

    model = nn.Sequential(Own(WIDTH, HEADS), nn.MultiheadAttention(WIDTH, HEADS))
    with pytest.warns(UserWarning, match=r"left alone.*0 \(Own\)"):
        assert replace_torch_attention(model) == ["1"]
    assert type(model[0]) is Own


@pytest.mark.parametrize("mask", ["none", "padding", "added"])
def test_compiles_whole(mask: str) -> None:
    model = encoder().eval()
    replace_torch_attention(model)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    how = {
        "none": {},
        "padding": {"src_key_padding_mask": torch.arange(LENGTH) >= torch.tensor([[3], [7], [5]])},
        "added": {"mask": torch.randn(LENGTH, LENGTH), "is_causal": False},
    }[mask]
    expected = model(x, **how)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    out = compiled(x, **how)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-6)
    wanted = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    got = torch.autograd.grad(out.square().sum(), list(model.parameters()))
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
