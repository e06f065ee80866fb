"""The paper's decoder: a stack of layers, each self-attention, cross-attention and a feed-forward network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from headwise.cache import Cache, CrossCache, GrowingCache
from headwise.masks import Causal, KeyLengths, Mask, all_of
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.dropping import dropped
from headwise.models.encoder import Norm
from headwise.models.feed_forward import Activation, FeedForward, check_dropout
from headwise.multihead import MultiHeadAttention


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, and a feed-forward network.

    norm="post", the paper's (*Attention Is All You Need*, 3.1):

        x = LayerNorm(x + Dropout(SelfAttention(x)))             a position sees itself and earlier ones
        x = LayerNorm(x + Dropout(CrossAttention(x, memory)))    queries from x; keys, values from memory
        x = LayerNorm(x + Dropout(FFN(x)))

    norm="pre": x = x + Dropout(Sublayer(LayerNorm(x))) for each; the memory is not normalised again.

    Shapes: x [batch, length, d_model], memory [batch, memory_length, d_model] -> [batch, length, d_model].

    Args:
        self_attention, cross_attention: the attentions to use; built from d_model, num_heads and
            attention_dropout where they aren't given.
        cross: whether the layer reads a memory. A decoder-only model (Radford et al. 2018, Liu et al. 2018)
            doesn't; it is then given cross=False, or a self_attention alone.

    The rest, and errors: see `EncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int | None = None,
        d_ff: int | None = None,
        *,
        self_attention: nn.Module | None = None,
        cross_attention: nn.Module | None = None,
        cross: bool = True,
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
        if cross_attention is not None and not cross:
            raise ValueError("a cross_attention module and cross=False: leave one of them out")

        def attention() -> nn.Module:
            if num_heads is None:
                raise ValueError("give num_heads, or the attention modules to use")
            return MultiHeadAttention(
                d_model, num_heads, projection_bias=attention_bias, dropout=attention_dropout
            )

        self.norm = norm
        self.self_attention = attention() if self_attention is None else self_attention
        self.self_attention_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.cross_attention: nn.Module | None = None
        if cross:
            self.cross_attention = attention() if cross_attention is None else cross_attention
            self.cross_attention_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        if feed_forward is None:
            feed_forward = FeedForward(d_model, 4 * d_model if d_ff is None else d_ff, activation=activation)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | None = None,
        memory_mask: Mask | None = None,
        cache: Cache | None = None,
        memory_cache: CrossCache | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            mask: of self-attention, besides `Causal()`, which always holds.
            memory_mask: of cross-attention: the memory's padding.
            cache, memory_cache: keys and values of earlier steps, and of the memory, which may be left out
                once its cache is filled.
            lengths: with a cache, int64 [batch]: how many steps of x are real.
        """

        kept = {} if cache is None else {"cache": cache, "lengths": lengths}
        positions = None
        if cache is not None and _has_places(self.cross_attention, memory_mask):
            positions = cache.next_positions(x.shape[1], device=x.device)  # before they have passed
        pre = self.norm == "pre"
        h = self.self_attention_norm(x) if pre else x
        x = self._add(
            x, self.self_attention(h, mask=all_of(Causal(), mask), **kept), self.self_attention_norm
        )
        if self.cross_attention is not None:
            h = self.cross_attention_norm(x) if pre else x
            h = _attend_across(self.cross_attention, h, memory, memory_mask, memory_cache, positions)
            x = self._add(x, h, self.cross_attention_norm)
        h = self.feed_forward_norm(x) if pre else x
        return self._add(x, self.feed_forward(h), self.feed_forward_norm)

    def _add(self, x: Tensor, h: Tensor, norm: nn.Module) -> Tensor:
        x = x + dropped(self.dropout, h)
        return x if self.norm == "pre" else norm(x)

    def extra_repr(self) -> str:
        return f"norm={self.norm!r}"


def _attend_across(
    attention: nn.Module,
    x: Tensor,
    memory: Tensor | None,
    mask: Mask | None,
    cache: CrossCache | None,
    positions: Tensor | None,
) -> Tensor:
    kept: dict[str, Any] = {} if cache is None else {"cache": cache}
    if positions is None and _has_places(attention, mask):
        # The first token stands where the memory starts, however many tokens there are by now.
        kept["align"] = "start"
    if cache is not None and cache.filled:
        inputs, memory = cache.view()[0].shape[0], None
    elif memory is not None:
        inputs = memory.shape[0]
    else:
        raise ValueError("this decoder attends to a memory, and there is none: give the encoder's output")
    queries = x
    if cache is not None and x.shape[0] != inputs and inputs and x.shape[0] % inputs == 0:
        # Several hypotheses for each input (beams) are all queries to its one memory, which then needn't
        # be repeated.
        queries = x.reshape(inputs, -1, x.shape[-1])
        if positions is not None:
            positions = positions.expand(x.shape[0], x.shape[1]).reshape(inputs, -1)
    if positions is not None:
        kept["positions"] = positions
    out: Tensor = attention(queries, memory, mask=mask, **kept)
    return out.reshape(x.shape)


def _has_places(attention: nn.Module | None, mask: Mask | None) -> bool:
    """Whether it matters to an attention across where queries and keys stand."""
    if not isinstance(attention, MultiHeadAttention):
        return False
    of_lengths = mask is None or isinstance(mask, KeyLengths)
    return attention.rotary is not None or attention.score_bias is not None or not of_lengths


class Decoder(nn.Module):
    """A stack of decoder layers, all of which read the same memory.

    `Decoder([DecoderLayer(...), ...])` takes ready layers; `Decoder.build(6, 512, 8, 2048)` makes the
    paper's. A pre-norm stack ends with a LayerNorm, since its last residual sum has had none.

    Shapes: x [batch, length, d_model], memory [batch, memory_length, d_model] -> [batch, length, d_model].

    Raises:
        ValueError: no layers.
    """

    def __init__(self, layers: Iterable[DecoderLayer], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if not len(self.layers):
            raise ValueError("a decoder needs at least one layer, got none")
        self.final_norm = final_norm

    @classmethod
    def build(
        cls,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        cross: bool = True,
        norm: Norm = "post",
        activation: Activation = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_bias: bool = False,
        layer_norm_eps: float = 1e-5,
    ) -> Decoder:
        """`num_layers` equal layers, each with its own parameters."""
        layers = [
            DecoderLayer(
                d_model,
                num_heads,
                d_ff,
                cross=cross,
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

    def caches(self, make: Callable[[], Cache] = GrowingCache) -> DecoderCaches:
        """Empty caches for decoding step by step; `make` makes one layer's.

        Cross-attention that knows no positions lets all hypotheses of an input read one memory; one with
        positions (rotary, score biases) or of another kind gets a copy for each.
        """
        across = [layer.cross_attention for layer in self.layers]
        shared = all(
            isinstance(one, MultiHeadAttention) and one.rotary is None and one.score_bias is None
            for one in across
            if one is not None
        )
        return DecoderCaches(make, len(self.layers), shared=shared)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | None = None,
        memory_lengths: Tensor | None = None,
        memory_mask: Mask | None = None,
        caches: DecoderCaches | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            mask: of self-attention, besides `Causal()`, which always holds.
            memory_lengths: int64 [batch], how much of each memory is real.
            memory_mask: any further mask of cross-attention.
            caches: those of earlier steps, from `caches()`; memory and memory_lengths are needed in the
                first call alone.
            lengths: with caches, int64 [batch]: how many steps of x are real.
        """
        if caches is not None:
            padding = caches.hide_padding(memory_lengths)
        else:
            padding = None if memory_lengths is None else KeyLengths(memory_lengths)
        memory_mask = all_of(padding, memory_mask)
        for index, layer in enumerate(self.layers):
            x = layer(
                x,
                memory,
                mask=mask,
                memory_mask=memory_mask,
                cache=None if caches is None else caches.steps[index],
                memory_cache=None if caches is None else caches.memory[index],
                lengths=lengths,
            )
        return x if self.final_norm is None else self.final_norm(x)
