"""How torch.nn.MultiheadAttention stores its three input projections: packed in one matrix or apart."""

from __future__ import annotations

from torch import Tensor, nn


def packed_weight(module: nn.MultiheadAttention) -> Tensor | None:
    """in_proj_weight [3 * embed_dim, embed_dim], or None where the projections are stored apart."""
    weight: Tensor | None = module.in_proj_weight
    return weight


def packed_bias(module: nn.MultiheadAttention) -> Tensor | None:
    """in_proj_bias [3 * embed_dim], or None."""
    bias: Tensor | None = module.in_proj_bias
    return bias


def projections(module: nn.MultiheadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """The query, key and value weights (views of the packed one)."""
    packed = packed_weight(module)
    if packed is None:
        return module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    q, k, v = packed.chunk(3)
    return q, k, v


def keep_off_fused_kernels(module: nn.MultiheadAttention) -> None:
    """Make nn.TransformerEncoderLayer and nn.TransformerEncoder call this module.

    Both hold inference kernels that read the parameters of self_attn and never call it. Both ask
    `_qkv_same_embed_dim` first and, told False, call the module. So the drop-in answers False, and its
    q_proj_weight, k_proj_weight and v_proj_weight, where code that heard False then looks, are views of
    the packed in_proj_weight."""
    module._qkv_same_embed_dim = False
