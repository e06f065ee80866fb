"""One layer's weights from torch.nn.MultiheadAttention to headwise's layer and back."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.interop.torch.drop_in import MultiheadAttention
from headwise.interop.torch.storage import packed_bias, packed_weight, projections
from headwise.multihead import MultiHeadAttention


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """The headwise layer that computes what `module` does, with a copy of its weights.

    Packed (in_proj_weight) and separate (q_proj_weight, ...) storage, kdim, vdim, bias, dropout, dtype,
    device, requires_grad and train/eval mode are kept. The layer is batch first whatever `module` is:

        module(q, k, v)[0]  ==  layer(q, k, values=v)         k and v may be the same tensor
        module(x, x, x)[0]  ==  layer(x)                      after .transpose(0, 1) unless batch_first

    Masks turn their sense: `key_padding_mask=m` (True = ignore) becomes
    `mask=Allow(~m[:, None, None, :])`.

    Raises:
        TypeError: no torch.nn.MultiheadAttention, or a subclass that computes something of its own.
        ValueError: add_bias_kv or add_zero_attn, which the layer has no place for; the drop-in has.
    """
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(f"from_torch takes a torch.nn.MultiheadAttention, got {type(module).__name__}")
    if type(module).forward not in (nn.MultiheadAttention.forward, MultiheadAttention.forward):
        raise TypeError(
            f"{type(module).__name__} is a subclass of torch.nn.MultiheadAttention with a forward of its "
            "own, so its parameters don't say what it computes: convert the module that it was made from"
        )
    reasons = []
    if module.bias_k is not None or module.bias_v is not None:
        reasons.append("add_bias_kv=True")
    if module.add_zero_attn:
        reasons.append("add_zero_attn=True")
    if reasons:
        raise ValueError(
            f"headwise.MultiHeadAttention has no place for {' and '.join(reasons)}: use "
            "headwise.interop.torch.MultiheadAttention, which has, or replace_torch_attention(model)"
        )
    layer = MultiHeadAttention(
        module.embed_dim,
        module.num_heads,
        memory_dim=module.kdim,
        value_dim=module.vdim,
        projection_bias=module.in_proj_bias is not None,
        out_bias=module.out_proj.bias is not None,
        dropout=module.dropout,
        device="meta",  # no random numbers drawn for weights that are overwritten
    )
    bias = packed_bias(module)
    _copy(layer.out_proj, module.out_proj.weight, module.out_proj.bias)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    for linear, weight, part in zip(
        (layer.q_proj, layer.k_proj, layer.v_proj), projections(module), biases, strict=True
    ):
        _copy(linear, weight, part)
    return layer.train(module.training)


def to_torch(layer: MultiHeadAttention, *, batch_first: bool = True) -> nn.MultiheadAttention:
    """The torch.nn.MultiheadAttention that computes what `layer` does, with a copy of its weights.

    Weights are packed where the three input widths are equal, and separate otherwise, as torch does it.
    `from_torch(to_torch(layer))` has bitwise the same parameters.

    Raises:
        TypeError: no headwise.MultiHeadAttention.
        ValueError: an option that torch has no place for; every one of them is named.
    """
    if not isinstance(layer, MultiHeadAttention):
        raise TypeError(f"to_torch takes a headwise.MultiHeadAttention, got {type(layer).__name__}")
    reasons = refusals(layer)
    if reasons:
        raise ValueError("torch.nn.MultiheadAttention can't hold this layer: " + "; ".join(reasons))
    linears = layer.q_proj, layer.k_proj, layer.v_proj
    out = layer.out_proj
    module = nn.MultiheadAttention(
        layer.d_model,
        layer.num_heads,
        dropout=layer.dropout,
        bias=out.bias is not None,
        kdim=layer.memory_dim,
        vdim=layer.value_dim,
        batch_first=batch_first,
        device="meta",
        dtype=out.weight.dtype,
    )
    if packed_weight(module) is not None:
        module.in_proj_weight = _parameter([linear.weight for linear in linears])
    else:
        module.q_proj_weight, module.k_proj_weight, module.v_proj_weight = (
            _parameter([linear.weight]) for linear in linears
        )
    module.out_proj.weight = _parameter([out.weight])
    if out.bias is not None:
        module.in_proj_bias = _parameter([linear.bias for linear in linears])
        module.out_proj.bias = _parameter([out.bias])
    return module.train(layer.training)


def refusals(layer: MultiHeadAttention) -> list[str]:
    """Why torch.nn.MultiheadAttention can't hold this layer; empty where it can."""
    each = layer.d_model / layer.num_heads
    linears = {name: getattr(layer, name) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
    other = [
        f"{name} is a {type(part).__name__}" for name, part in linears.items() if type(part) is not nn.Linear
    ]
    if other:
        return [f"its projections must be plain nn.Linear, but {', '.join(other)} (merge adapters first)"]
    checks = [
        (
            layer.num_kv_heads != layer.num_heads,
            f"num_kv_heads={layer.num_kv_heads} but torch has one key/value head per query head "
            f"({layer.num_heads})",
        ),
        (layer.d_k != each, f"d_k={layer.d_k}, but torch's is d_model / num_heads = {each:g}"),
        (layer.d_v != each, f"d_v={layer.d_v}, but torch's is d_model / num_heads = {each:g}"),
        (
            layer.input_dim != layer.d_model,
            f"input_dim={layer.input_dim}, but torch's queries have width d_model={layer.d_model}",
        ),
        (
            layer.output_dim != layer.d_model,
            f"output_dim={layer.output_dim}, but torch's output has width d_model={layer.d_model}",
        ),
        (
            layer.scale is not None and not math.isclose(layer.scale, layer.d_k**-0.5),
            f"scale={layer.scale}, but torch's is 1 / sqrt(d_k)",
        ),
        (layer.rotary is not None, "rotary: torch turns nothing by position"),
        (
            layer.q_norm is not None or layer.k_norm is not None,
            "qk_norm: torch doesn't normalise queries and keys",
        ),
        (layer.gate_proj is not None, "gate: torch has no gate per head"),
        (layer.score_bias is not None, "score_bias: torch has none of its own (give it a float attn_mask)"),
        (layer.softcap is not None, f"softcap={layer.softcap}: torch caps no scores"),
        (layer.sinks is not None, "sinks: torch has no learned sinks"),
        (
            (layer.q_proj.bias is None) != (layer.out_proj.bias is None),
            "projection_bias and out_bias differ, but torch has both or neither",
        ),
    ]
    return [reason for refused, reason in checks if refused]


def _copy(linear: nn.Linear, weight: Tensor, bias: Tensor | None) -> None:
    linear.weight = nn.Parameter(weight.detach().clone(), requires_grad=weight.requires_grad)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)


def _parameter(parts: list[Tensor]) -> nn.Parameter:
    with torch.no_grad():
        joined = torch.cat(parts) if len(parts) > 1 else parts[0].clone()
    return nn.Parameter(joined, requires_grad=any(part.requires_grad for part in parts))
