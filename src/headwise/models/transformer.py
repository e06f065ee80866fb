"""The Transformer of *Attention Is All You Need*."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import torch
from torch import Tensor, nn

from headwise.cache import RingCache
from headwise.masks import KeyLengths, Mask
from headwise.models.building import (
    AttentionFactory,
    decoder_from,
    decoder_mask,
    encoder_from,
    encoder_mask,
)
from headwise.models.checks import check_integers, check_lengths
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.decoding.steppers import MemoryStepper, check_mode
from headwise.models.embeddings import Embeddings, TokenEmbedding, positions_from
from headwise.models.pointer import Places, Pointer
from headwise.models.table3 import find_row
from headwise.models.transformer_config import TransformerConfig


class Transformer(nn.Module):
    """Encoder and decoder over tokens, exactly as in the paper unless the configuration says otherwise.

        memory = Encoder(Embeddings(source))
        logits = Decoder(Embeddings(target), memory) E^T
        p(target[i + 1] | target[.. i], source) = softmax(logits[i])

    With config.copy, `pointer` lets tokens of the source be copied: the scores are then those of `Pointer`.

    The three uses of attention (3.2.3) are, by name:

        encoder.layers[n].self_attention      source to source, everywhere
        decoder.layers[n].self_attention      target to target, `Causal()`
        decoder.layers[n].cross_attention     target to memory

    Shapes: B batch, S source length, T target length, V vocabulary; source int64 [B, S], target int64
    [B, T] -> logits [B, T, V].

    Args:
        config: sizes and choices; `Transformer.base(vocab_size)` makes the paper's.
        attention: makes the attention modules instead: called with "encoder", "decoder" or "cross", once for
            each layer.

    Initialisation (the paper doesn't say): projections and feed-forward weights Xavier-uniform, biases 0,
    embeddings N(0, 1 / d_model).
    """

    def __init__(self, config: TransformerConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        source = TokenEmbedding(config.vocab_size, config.d_model)
        target = source if config.share_embeddings else TokenEmbedding(config.vocab_size, config.d_model)
        self.source_embeddings = Embeddings(
            source, positions_from(config), dropout=config.dropout, name="source"
        )
        self.target_embeddings = Embeddings(
            target, positions_from(config), dropout=config.dropout, name="target"
        )
        self.encoder = encoder_from(config, attention)
        self.decoder = decoder_from(config, attention, num_layers=config.num_decoder_layers)
        # the projection before the softmax; where it is the embedding's matrix, it is the same module
        self.output = target if config.share_embeddings else TokenEmbedding(config.vocab_size, config.d_model)
        self.pointer = Pointer(config.d_model) if config.copy else None

    @classmethod
    def base(cls, vocab_size: int, **changes: Any) -> Self:
        """The paper's base model: N = 6, d_model 512, d_ff 2048, h = 8 (65 million parameters)."""
        return cls.table3("base", vocab_size, **changes)

    @classmethod
    def big(cls, vocab_size: int, **changes: Any) -> Self:
        """The paper's big model: N = 6, d_model 1024, d_ff 4096, h = 16, dropout 0.3 (213 million)."""
        return cls.table3("big", vocab_size, **changes)

    @classmethod
    def table3(cls, row: str, vocab_size: int, **changes: Any) -> Self:
        """Any row of the paper's table 3 by name, such as "A h=1", "B d_k=16" or "E learned".

        Args:
            changes: of the configuration, beyond the row's.

        Raises:
            ValueError: no such row; the message lists them.
        """
        return cls(dataclasses.replace(find_row(row).config(vocab_size), **changes))

    def encode(
        self, source: Tensor, source_lengths: Tensor | None = None, *, mask: Mask | None = None
    ) -> Tensor:
        """The memory: one vector per source token, [B, S, d_model].

        Args:
            source_lengths: int64 [B], how many tokens of each source are real. Default: all.
            mask: any further mask.
        """
        x = self.source_embeddings(source)
        check_lengths("source_lengths", source_lengths, source.shape[0])
        padding = None if source_lengths is None else KeyLengths(source_lengths)
        memory: Tensor = self.encoder(x, mask=encoder_mask(self.config, padding, mask))
        return memory

    def decode(
        self,
        target: Tensor,
        memory: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        *,
        source: Tensor | None = None,
        caches: DecoderCaches | None = None,
        mask: Mask | None = None,
    ) -> Tensor:
        """Scores of the token after each target token, [B, T, V].

        Args:
            target: the target so far, beginning with config.bos_id. Padding at its end changes nothing
                before it. With caches: the tokens since the last call.
            memory: what `encode` gave; with caches, needed in the first call alone.
            memory_lengths: int64 [B], the source's lengths; likewise.
            source: int64 [B, S], the tokens that the memory was made from, for a model that copies; likewise.
            mask: of self-attention, besides `Causal()`.
        """
        states = self.decoder_states(target, memory, memory_lengths, caches=caches, mask=mask)
        logits = self.logits(states)
        if self.pointer is None:
            return logits
        places = None if caches is None else caches.places
        if places is None:
            if source is None:
                raise ValueError("this model copies (copy=True): give the source's tokens, source=")
            places = Places.of(source)
        if caches is None:
            padding: Mask | None = None if memory_lengths is None else KeyLengths(memory_lengths)
        else:
            caches.places = places
            padding = caches.hide_padding(memory_lengths)
        kept = None if caches is None else caches.copied
        scores: Tensor = self.pointer(states, logits, places, memory, mask=padding, cache=kept)
        return scores

    def decoder_states(
        self,
        target: Tensor,
        memory: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        *,
        caches: DecoderCaches | None = None,
        mask: Mask | None = None,
    ) -> Tensor:
        """What `decode` computes the scores from: the decoder's output, [B, T, d_model]."""
        positions = None if caches is None else caches.next_positions(target.shape[1], target.device)
        x = self.target_embeddings(target, positions=positions)
        out: Tensor = self.decoder(
            x, memory, memory_lengths=memory_lengths, mask=decoder_mask(self.config, mask), caches=caches
        )
        return out

    def logits(self, states: Tensor) -> Tensor:
        """The projection before the softmax (and before copying): [..., d_model] -> [..., V]."""
        return self.output.logits(states)

    def forward(self, source: Tensor, target: Tensor, source_lengths: Tensor | None = None) -> Tensor:
        """Scores of the token after each target token; see `encode` and `decode`."""
        check_integers("source", source)
        check_integers("target", target)
        if source.ndim == target.ndim == 2 and source.shape[0] != target.shape[0]:
            raise ValueError(
                f"source.shape={tuple(source.shape)} and target.shape={tuple(target.shape)}: each source has "
                "one target, so their first dimensions must be equal"
            )
        return self.decode(target, self.encode(source, source_lengths), source_lengths, source=source)

    def caches(self) -> DecoderCaches:
        """Empty caches for `decode`; with a window they keep no more than it reaches."""
        window = self.config.window
        return self.decoder.caches() if window is None else self.decoder.caches(lambda: RingCache(window))

    def stepper(
        self, source: Tensor, source_lengths: Tensor | None = None, *, cached: bool = True
    ) -> MemoryStepper:
        """What `greedy`, `beam_search` and `sample` decode with: the sources encoded, nothing written yet."""
        check_mode(self)
        with torch.no_grad():
            memory = self.encode(source, source_lengths)
        copied = {} if self.pointer is None else {"source": source}
        return MemoryStepper(self, memory, source_lengths, cached=cached, **copied)
