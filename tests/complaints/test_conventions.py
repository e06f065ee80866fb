"""Conventions that differ between libraries: ours are written out, row by row, and translated."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from headwise import Causal, Window, attention
from headwise.attention import problem, solve
from headwise.masks import Frame, Mask
from headwise.observers import Weights


def seen_keys(mask: Mask, query: int, q_len: int = 16, k_len: int = 16) -> list[int]:
    """Which keys a query may attend to."""
    row = mask.dense(Frame.of((1,), 1, q_len, k_len))[0, 0, query]
    return row.nonzero().flatten().tolist()


@pytest.mark.parametrize(
    ("mask", "keys"),
    [
        # "W previous keys and itself"
        (Window.from_flash_attention((4, 0)), [6, 7, 8, 9, 10]),
        (Window.from_flash_attention((4, 2), causal=True), [6, 7, 8, 9, 10]),
        (Window.from_torch_varlen((4, 2)), [6, 7, 8, 9, 10, 11, 12]),
        (Window.from_flashinfer(4), [6, 7, 8, 9, 10]),
        (Window.from_jax(4, is_causal=True), [6, 7, 8, 9, 10]),
        (Window.from_attention_gym(4), [6, 7, 8, 9, 10]),
        (Window.from_x_transformers(4), [6, 7, 8, 9, 10]),
        # "W keys with itself"
        (Window.from_huggingface(4), [7, 8, 9, 10]),
        (Window.from_mistral(4), [7, 8, 9, 10]),
        (Window.from_keras(4), [7, 8, 9, 10]),
        (Window.from_torchtune(4), [7, 8, 9, 10]),
        # 2 W + 1: Hugging Face's layers in both directions
        (Window.from_huggingface(2, causal=False), [8, 9, 10, 11, 12]),
        # ours: neighbours on each side, itself on top
        (Window(4, 0), [6, 7, 8, 9, 10]),
        (Window(3, 0), [7, 8, 9, 10]),
        (Window(0, 0), [10]),
        (Window(2, 2), [8, 9, 10, 11, 12]),
        (Window(None, 1), list(range(12))),
    ],
)
def test_how_windows_count(mask: Mask, keys: list[int]) -> None:
    """Query 10 of 16. The same number is five keys in one library and four in another."""
    assert seen_keys(mask, 10) == keys
    q, k = torch.zeros(1, 1, 16, 3), torch.zeros(1, 1, 16, 3)
    v = torch.eye(16).view(1, 1, 16, 16)  # the output is the row of weights
    row = attention(q, k, v, mask=mask)[0, 0, 10]
    assert row.nonzero().flatten().tolist() == keys
    torch.testing.assert_close(row[keys], torch.full((len(keys),), 1 / len(keys)))


@pytest.mark.parametrize("kernel", ["torch", "tiled", "reference"])
@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (6, 6), (6, 3), (6, 2), (6, 1)])
def test_which_key_head_a_query_head_reads(heads: int, kv_heads: int, kernel: str) -> None:
    """Query head i reads i // (heads // kv_heads), as in torch, Hugging Face, FlashAttention and flax;
    x-transformers reads i % kv_heads. Each head's values hold its own number."""
    q, k = torch.zeros(1, heads, 5, 4), torch.zeros(1, kv_heads, 7, 4)
    v = torch.arange(kv_heads).float().view(1, kv_heads, 1, 1).expand(1, kv_heads, 7, 4)
    out = attention(q, k, v, kernel=kernel)
    numbers = out[0, :, 0, 0].round().int().tolist()
    assert numbers == [i // (heads // kv_heads) for i in range(heads)]
    theirs = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(out, theirs)


@pytest.mark.parametrize("kernel", ["torch", "tiled", "reference"])
@pytest.mark.parametrize(("q_len", "k_len"), [(3, 7), (7, 3), (1, 8), (5, 5), (130, 65)])
def test_where_causal_masks_begin(q_len: int, k_len: int, kernel: str) -> None:
    """Ours ends where the keys end (FlashAttention since 2.1, varlen, FlashInfer, xFormers'
    FromBottomRight). align="start" is torch's is_causal, JAX's, Keras's and nanoGPT's."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 4) for n in (q_len, k_len, k_len))
    end = attention(q, k, v, mask=Causal(), kernel=kernel)
    start = attention(q, k, v, mask=Causal(), align="start", kernel=kernel)
    if k_len >= q_len:
        bias = causal_lower_right(q_len, k_len)
        torch.testing.assert_close(end, F.scaled_dot_product_attention(q, k, v, attn_mask=bias))
    else:  # torch's text says NaN for the queries before the first key; here they are 0
        assert (end[:, :, : q_len - k_len] == 0).all()
    bias = causal_upper_left(q_len, k_len)
    torch.testing.assert_close(start, F.scaled_dot_product_attention(q, k, v, attn_mask=bias))
    torch.testing.assert_close(start, F.scaled_dot_product_attention(q, k, v, is_causal=True))
    if q_len == k_len:
        assert torch.equal(start, end)


def by_library(name: str, scores: Tensor, v: Tensor) -> Tensor:
    """What a row that is hidden as a whole gives elsewhere, by the way in which it is computed there."""
    hidden = torch.zeros(5, dtype=torch.bool)
    if name == "softmax over -inf":  # nn.MultiheadAttention's slow path, timm's unfused path
        return scores.masked_fill(~hidden, -float("inf")).softmax(-1) @ v
    return scores.masked_fill(~hidden, torch.finfo(scores.dtype).min).softmax(-1) @ v  # JAX, flax, HF eager


def test_what_a_hidden_row_gives() -> None:
    """NaN in some libraries, the mean of the values in others; 0 here, as in FlashAttention and Flex."""
    torch.manual_seed(0)
    scores, v = torch.randn(1, 1, 1, 5), torch.randn(1, 1, 5, 3)
    assert by_library("softmax over -inf", scores, v).isnan().all()
    torch.testing.assert_close(by_library("finfo.min", scores, v), v.mean(-2, keepdim=True))
    q, k = torch.randn(1, 1, 1, 3), torch.randn(1, 1, 5, 3)
    out, lse = solve(problem(q, k, v, mask=~Window(None, None)))
    assert (out == 0).all()
    assert (lse == -float("inf")).all()
    _, seen = attention(q, k, v, mask=~Window(None, None), observe=[Weights()])
    assert (seen.weights == 0).all()
