"""The paper's encoder: a stack of layers, each self-attention and then a feed-forward network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from torch import Tensor, nn

from headwise.masks.base import Mask
from headwise.models.dropping import dropped
from headwise.models.feed_forward import Activation, FeedForward, check_dropout
from headwise.multihead import MultiHeadAttention

Norm = Literal["post", "pre"]


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection and LayerNorm.

    norm="post", the paper's (*Attention Is All You Need*, 3.1):

        x = LayerNorm(x + Dropout(SelfAttention(x)))
        x = LayerNorm(x + Dropout(FFN(x)))

    norm="pre" (Xiong et al. 2020, *On Layer Normalization in the Transformer Architecture*):

        x = x + Dropout(SelfAttention(LayerNorm(x)))
        x = x + Dropout(FFN(LayerNorm(x)))

    Shapes: [batch, length, d_model] -> [batch, length, d_model].

    Args:
        self_attention: the attention to use; built from d_model, num_heads and attention_dropout
            where it isn't given. Any module called as `module(x, mask=mask)` will do.
        feed_forward: the network to use; built from d_model, d_ff and activation where it isn't given.
        d_ff: inner width of the built network; 4 x d_model where it isn't given, as in the paper.
        dropout: share of each sub-layer's output that is set to 0 before it is added (the paper's P_drop).
        attention_dropout: share of the attention weights that is set to 0 (the paper has none; BERT has).
        attention_bias: biases in the built attention's projections (the paper has none; BERT has).
        norm: "post" or "pre".
        layer_norm_eps: added to the variance in LayerNorm.

    Raises:
        ValueError: neither self_attention nor num_heads, an unknown norm, dropout outside [0, 1), and
            whatever the parts themselves refuse.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int | None = None,
        d_ff: int | None = None,
        *,
        self_attention: nn.Module | None = None,
        feed_forward: nn.Module | None = None,
        norm: Norm = "post",
        activation: Activation = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_bias: bool = False,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f'norm must be "post" (the paper\'s) or "pre", got {norm!r}')
        check_dropout(dropout)
        if self_attention is None:
            if num_heads is None:
                raise ValueError("give num_heads, or a self_attention module to use")
            self_attention = MultiHeadAttention(
                d_model, num_heads, projection_bias=attention_bias, dropout=attention_dropout
            )
        if feed_forward is None:
            feed_forward = FeedForward(d_model, 4 * d_model if d_ff is None else d_ff, activation=activation)
        self.norm = norm
        self.self_attention = self_attention
        self.self_attention_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *, mask: Mask | None = None) -> Tensor:
        if self.norm == "pre":
            x = x + dropped(self.dropout, self.self_attention(self.self_attention_norm(x), mask=mask))
            x = x + dropped(self.dropout, self.feed_forward(self.feed_forward_norm(x)))
        else:
            x = self.self_attention_norm(x + dropped(self.dropout, self.self_attention(x, mask=mask)))
            x = self.feed_forward_norm(x + dropped(self.dropout, self.feed_forward(x)))
        return x

    def extra_repr(self) -> str:
        return f"norm={self.norm!r}"


class Encoder(nn.Module):
    """A stack of encoder layers, called one after another with the same mask.

    `Encoder([EncoderLayer(...), ...])` takes ready layers; `Encoder.build(6, 512, 8, 2048)` makes the
    paper's. A pre-norm stack ends with a LayerNorm, since its last residual sum has had none.

    Shapes: [batch, length, d_model] -> [batch, length, d_model].

    Raises:
        ValueError: no layers.
    """

    def __init__(self, layers: Iterable[nn.Module], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if not len(self.layers):
            raise ValueError("an encoder needs at least one layer, got none")
        self.final_norm = final_norm

    @classmethod
    def build(
        cls,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        norm: Norm = "post",
        activation: Activation = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_bias: bool = False,
        layer_norm_eps: float = 1e-5,
    ) -> Encoder:
        """`num_layers` equal layers, each with its own parameters. The paper's base model is
        `Encoder.build(6, 512, 8, 2048)` (table 3)."""
        layers = [
            EncoderLayer(
                d_model,
                num_heads,
                d_ff,
                norm=norm,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                attention_bias=attention_bias,
                layer_norm_eps=layer_norm_eps,
            )
            for _ in range(num_layers)
        ]
        final = nn.LayerNorm(d_model, eps=layer_norm_eps) if norm == "pre" else None
        return cls(layers, final_norm=final)

    def forward(self, x: Tensor, *, mask: Mask | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask=mask)
        return x if self.final_norm is None else self.final_norm(x)
