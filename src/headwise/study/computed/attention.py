"""What attention costs and holds."""

from __future__ import annotations

import math

import torch

from headwise.multihead import MultiHeadAttention


def head_width(d_model: int, num_heads: int) -> int:
    """d_k of a layer whose heads share its width evenly."""
    return _attention(d_model, num_heads).d_k


def attention_parameters(
    d_model: int,
    num_heads: int,
    d_k: int | None = None,
    d_v: int | None = None,
    num_kv_heads: int | None = None,
    bias: bool = False,
) -> int:
    """Parameters of one MultiHeadAttention; the paper's has no biases."""
    layer = _attention(d_model, num_heads, d_k=d_k, d_v=d_v, num_kv_heads=num_kv_heads, projection_bias=bias)
    return sum(parameter.numel() for parameter in layer.parameters())


def projection_parameters(d_in: int, d_out: int) -> int:
    """Weights of a projection without bias."""
    with torch.device("meta"):
        return torch.nn.Linear(d_in, d_out, bias=False).weight.numel()


def attention_blocks(layers: int) -> int:
    """Attention layers of a Transformer with as many encoder as decoder layers: one for each encoder layer,
    two for each decoder layer."""
    return layers + 2 * layers


def attention_scale(d_k: int) -> float:
    """What scores are multiplied by: 1 / sqrt(d_k)."""
    return 1 / math.sqrt(d_k)


def score_variance(d_k: int) -> int:
    """The variance of q . k where all components are independent with mean 0 and variance 1: each product has
    variance 1, and variances of independent terms add up."""
    return d_k


def score_deviation(d_k: int) -> float:
    """The standard deviation of q . k under the same assumption."""
    return math.sqrt(score_variance(d_k))


def score_count(n: int, num_heads: int = 1) -> int:
    """Scores of self-attention over n positions."""
    return num_heads * n * n


def visible_pairs(n: int) -> int:
    """Pairs of query and key that a causal mask over n positions leaves."""
    return n * (n + 1) // 2


def weights_bytes(n: int, num_heads: int = 1, batch: int = 1, bytes_each: int = 4) -> int:
    """Memory of a whole matrix of attention weights for n positions."""
    return batch * score_count(n, num_heads) * bytes_each


def cache_bytes(
    n: int, layers: int, num_kv_heads: int, d_k: int, d_v: int | None = None, bytes_each: int = 2
) -> int:
    """Memory of the keys and values that a decoder keeps for n positions."""
    return n * layers * num_kv_heads * (d_k + (d_k if d_v is None else d_v)) * bytes_each


def _attention(d_model: int, num_heads: int, **options: int | bool | None) -> MultiHeadAttention:
    given = {name: value for name, value in options.items() if value is not None}
    with torch.device("meta"):
        return MultiHeadAttention(d_model, num_heads, **given)  # type: ignore[arg-type]
