"""Stacks from a configuration; one function, which can be replaced, makes every attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import nn

from headwise.masks import Mask, Window, all_of
from headwise.models.decoder import Decoder, DecoderLayer
from headwise.models.encoder import Encoder, EncoderLayer
from headwise.models.feed_forward import FeedForward
from headwise.models.stack_config import StackConfig
from headwise.multihead import MultiHeadAttention
from headwise.positions import Rotary

Use = Literal["encoder", "decoder", "cross"]

# Called once per attention of a model, with what it is for: the encoder's self-attention, the decoder's, or
# the attention from decoder to encoder. Hands out the module, called as `module(x, memory, mask=, cache=)`.
AttentionFactory = Callable[[Use], nn.Module]


def attention_from(config: StackConfig) -> AttentionFactory:
    """The factory of a configuration: `MultiHeadAttention` of its sizes, turned if its positions are rotary
    (not across: a source's positions say nothing about a target's)."""

    def make(use: Use) -> nn.Module:
        d_k = config.d_model // config.num_heads if config.d_k is None else config.d_k
        return MultiHeadAttention(
            config.d_model,
            config.num_heads,
            num_kv_heads=config.num_kv_heads,
            d_k=config.d_k,
            d_v=config.d_v,
            projection_bias=config.attention_bias,
            dropout=config.attention_dropout,
            rotary=Rotary(d_k) if config.positions == "rotary" and use != "cross" else None,
        )

    return make


def encoder_from(config: StackConfig, attention: AttentionFactory | None = None) -> Encoder:
    """The encoder of a configuration."""
    make = attention_from(config) if attention is None else attention
    layers = [
        EncoderLayer(
            config.d_model,
            self_attention=make("encoder"),
            feed_forward=_feed_forward(config),
            norm=config.norm,
            dropout=config.dropout,
            layer_norm_eps=config.layer_norm_eps,
        )
        for _ in range(config.num_layers)
    ]
    return Encoder(layers, final_norm=_final_norm(config))


def decoder_from(
    config: StackConfig,
    attention: AttentionFactory | None = None,
    *,
    num_layers: int | None = None,
    cross: bool = True,
) -> Decoder:
    """The decoder of a configuration; with cross=False it reads no memory (a language model)."""
    make = attention_from(config) if attention is None else attention
    layers = [
        DecoderLayer(
            config.d_model,
            self_attention=make("decoder"),
            cross_attention=make("cross") if cross else None,
            cross=cross,
            feed_forward=_feed_forward(config),
            norm=config.norm,
            dropout=config.dropout,
            layer_norm_eps=config.layer_norm_eps,
        )
        for _ in range(config.num_layers if num_layers is None else num_layers)
    ]
    return Decoder(layers, final_norm=_final_norm(config))


def encoder_mask(config: StackConfig, *masks: Mask | None) -> Mask | None:
    """These masks and the configuration's window, on both sides."""
    window = None if config.window is None else Window(config.window, config.window)
    return all_of(*masks, window)


def decoder_mask(config: StackConfig, mask: Mask | None) -> Mask | None:
    """This mask and the configuration's window of earlier positions."""
    return all_of(mask, None if config.window is None else Window(config.window, 0))


def _feed_forward(config: StackConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, activation=config.activation)


def _final_norm(config: StackConfig) -> nn.Module | None:
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps) if config.norm == "pre" else None
