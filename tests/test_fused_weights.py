"""Fused weights of other models, there and back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from headwise.masks import Causal
from headwise.multihead import FusedRows, MultiHeadAttention
from headwise.positions import Rotary
from plain_layers import BATCH, D_K, D_V, F64, HEADS, Q_IN, L, build, draw

# Fused weights


@pytest.mark.parametrize("kv_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("layout", ["stacked", "per_head"])
def test_fused_weights_there_and_back(layout: Any, transposed: bool, bias: bool, kv_heads: int) -> None:
    module = build(num_kv_heads=kv_heads, projection_bias=bias)
    weight, fused_bias = module.fused_weight(layout, transposed=transposed)
    rows = HEADS * D_K + kv_heads * (D_K + D_V)
    assert weight.shape == ((Q_IN, rows) if transposed else (rows, Q_IN))
    assert (fused_bias is not None) == bias
    other = build(num_kv_heads=kv_heads, projection_bias=bias)
    other.reset_parameters()
    other.out_proj.load_state_dict(module.out_proj.state_dict())
    other.load_fused(weight, fused_bias, layout, transposed=transposed)
    x = draw(BATCH, L, Q_IN)
    assert torch.equal(other(x), module(x))


def test_fused_rows_on_paper() -> None:
    rows = FusedRows(num_heads=4, num_kv_heads=2, d_k=1, d_v=1)
    q, k, v = torch.tensor([0, 1, 2, 3]), torch.tensor([10, 11]), torch.tensor([20, 21])
    assert rows.join(q, k, v, "stacked").tolist() == [0, 1, 2, 3, 10, 11, 20, 21]
    assert rows.join(q, k, v, "per_head").tolist() == [0, 1, 10, 20, 2, 3, 11, 21]


def test_stacked_weights_are_torchs() -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=F64)
    nn.init.normal_(theirs.in_proj_bias)
    ours = MultiHeadAttention(12, 3, projection_bias=True, dtype=F64)
    ours.load_fused(theirs.in_proj_weight, theirs.in_proj_bias)
    ours.out_proj.load_state_dict(theirs.out_proj.state_dict())
    x = draw(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x, x, x, need_weights=False)[0])


def test_per_head_weights_are_those_of_gpt_neox() -> None:
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    config = neox.GPTNeoXConfig(
        hidden_size=24, num_attention_heads=3, rotary_pct=0.25, attn_implementation="eager"
    )
    torch.manual_seed(0)
    theirs = neox.GPTNeoXAttention(config, layer_idx=0).eval()
    rotary = Rotary(8, rotary_dim=2)
    ours = MultiHeadAttention(24, 3, projection_bias=True, rotary=rotary)
    ours.load_fused(theirs.query_key_value.weight, theirs.query_key_value.bias, "per_head")
    ours.out_proj.load_state_dict(theirs.dense.state_dict())
    x, at = torch.randn(2, 5, 24), torch.arange(5)
    cos, sin = (torch.cat((turn, turn), -1)[None] for turn in rotary.turns(at))
    hidden = torch.full((5, 5), torch.finfo(torch.float32).min).triu(1)[None, None]
    want = theirs(x, attention_mask=hidden, position_embeddings=(cos, sin))[0]
    torch.testing.assert_close(ours(x, mask=Causal()), want, rtol=1e-5, atol=1e-5)
