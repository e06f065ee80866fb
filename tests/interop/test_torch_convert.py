"""Weights from torch.nn.MultiheadAttention to headwise's layer and back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.ao.nn import quantizable

from headwise.interop.torch import MultiheadAttention, from_torch, to_torch
from headwise.masks import Allow
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary

WIDTH, HEADS, BATCH, Q_LEN, K_LEN, KDIM, VDIM = 12, 3, 2, 5, 7, 11, 13


def filled(**options: Any) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += torch.randn_like(parameter) / 3
    return module


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "sizes", [{}, {"kdim": KDIM}, {"kdim": KDIM, "vdim": KDIM}, {"kdim": KDIM, "vdim": VDIM}]
)
def test_layer_computes_what_torch_does(bias: bool, batch_first: bool, sizes: dict[str, int]) -> None:
    module = filled(bias=bias, batch_first=batch_first, **sizes)
    layer = from_torch(module)
    q = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    k = torch.randn(BATCH, K_LEN, module.kdim, dtype=torch.float64)
    v = torch.randn(BATCH, K_LEN, module.vdim, dtype=torch.float64)
    ignored = torch.tensor([[False] * 4 + [True] * 3, [False] * 7])
    turned = (q, k, v) if batch_first else tuple(x.transpose(0, 1) for x in (q, k, v))
    expected, _ = module(*turned, key_padding_mask=ignored, need_weights=False)
    expected = expected if batch_first else expected.transpose(0, 1)
    out = layer(q, k, values=v, mask=Allow(~ignored[:, None, None, :]))
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-12)
    if not sizes:
        x = q if batch_first else q.transpose(0, 1)
        own, _ = module(x, x, x, need_weights=False)
        torch.testing.assert_close(layer(q), own if batch_first else own.transpose(0, 1))


@pytest.mark.parametrize("sizes", [{}, {"kdim": KDIM, "vdim": VDIM}, {"bias": False}, {"vdim": VDIM}])
def test_round_trip_is_bitwise(sizes: dict[str, Any]) -> None:
    module = filled(dropout=0.25, **sizes).eval()
    back = to_torch(from_torch(module), batch_first=module.batch_first)
    assert list(back.state_dict()) == list(module.state_dict())
    for name, value in module.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
        assert back.state_dict()[name].dtype == value.dtype
    assert (back.dropout, back.training, back.batch_first) == (0.25, False, False)

    layer = from_torch(module)
    again = from_torch(to_torch(layer))
    for name, value in layer.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_weights_are_copies_and_keep_what_learns() -> None:
    module = filled()
    module.in_proj_weight.requires_grad_(False)
    with torch.no_grad():
        layer = from_torch(module)
        assert layer.out_proj.weight.requires_grad
        assert layer.k_proj.bias.requires_grad
        assert not layer.q_proj.weight.requires_grad
        learned = from_torch(filled())
        assert all(parameter.requires_grad for parameter in learned.parameters())
        layer.q_proj.weight += 1
        layer.out_proj.weight += 1
    assert torch.equal(module.in_proj_weight, filled().in_proj_weight)
    assert torch.equal(module.out_proj.weight, filled().out_proj.weight)


def test_conversion_draws_no_random_numbers() -> None:
    module = filled()
    torch.manual_seed(7)
    expected = torch.rand(())
    torch.manual_seed(7)
    to_torch(from_torch(module))
    assert torch.equal(torch.rand(()), expected)


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_what_the_layer_has_no_place_for(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}=True: use headwise.interop.torch.MultiheadAttention"):
        from_torch(filled(**{option: True}))
    assert isinstance(from_torch(MultiheadAttention(WIDTH, HEADS)), MultiHeadAttention)
    with pytest.raises(TypeError, match="got Linear"):
        from_torch(nn.Linear(2, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"num_kv_heads": 1}, "num_kv_heads=1"),
        ({"d_k": 5}, "d_k=5"),
        ({"d_v": 5}, "d_v=5"),
        ({"input_dim": 17}, "input_dim=17"),
        ({"output_dim": 17}, "output_dim=17"),
        ({"scale": 0.25}, "scale=0.25"),
        ({"rotary": Rotary(4)}, "rotary"),
        ({"qk_norm": True}, "qk_norm"),
        ({"gate": True}, "gate"),
        ({"score_bias": ALiBi.for_heads(HEADS)}, "score_bias"),
        ({"softcap": 30.0}, "softcap=30.0"),
        ({"sinks": True}, "sinks"),
        ({"projection_bias": True, "out_bias": False}, "projection_bias and out_bias differ"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_torch_has_no_place_for(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match="can't hold this layer") as error:
        to_torch(MultiHeadAttention(WIDTH, HEADS, **options))
    assert reason in str(error.value)


def test_every_reason_is_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"num_kv_heads=1.*softcap=2.*sinks"):
        to_torch(MultiHeadAttention(WIDTH, HEADS, num_kv_heads=1, softcap=2.0, sinks=True))
    with pytest.raises(TypeError, match="got MultiheadAttention"):
        to_torch(filled())  # type: ignore[arg-type]


def test_replaced_projections_are_refused() -> None:
    layer = MultiHeadAttention(WIDTH, HEADS)
    layer.v_proj = nn.Sequential(layer.v_proj)  # as an adapter would wrap it
    with pytest.raises(ValueError, match="v_proj is a Sequential"):
        to_torch(layer)


def test_a_subclass_with_ways_of_its_own_is_refused() -> None:
    """Its parameters of the torch kind may be unused: torch's quantizable attention has others."""

    class Own(nn.MultiheadAttention):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs)

    class Named(nn.MultiheadAttention):
        """Nothing but a name."""

    for module in (Own(WIDTH, HEADS), quantizable.MultiheadAttention(WIDTH, HEADS)):
        with pytest.raises(TypeError, match="with a forward of its own"):
            from_torch(module)
    x = torch.randn(BATCH, Q_LEN, WIDTH)
    for module in (Named(WIDTH, HEADS, batch_first=True), MultiheadAttention(WIDTH, HEADS, batch_first=True)):
        torch.testing.assert_close(from_torch(module)(x), module(x, x, x)[0])
