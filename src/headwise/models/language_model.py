"""A decoder-only language model."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from headwise.cache import RingCache
from headwise.masks import Mask
from headwise.models.building import AttentionFactory, decoder_from, decoder_mask
from headwise.models.checks import check_lengths
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.decoding.steppers import TokenStepper
from headwise.models.embeddings import Embeddings, TokenEmbedding, positions_from
from headwise.models.encoder import Norm
from headwise.models.feed_forward import Activation
from headwise.models.stack_config import TokenConfig


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(TokenConfig):
    """Sizes and choices of a `LanguageModel`: as `TokenConfig`, but pre-norm and gelu, as GPT-2 has them."""

    norm: Norm = "pre"
    activation: Activation = "gelu"


class LanguageModel(nn.Module):
    """The paper's decoder without cross-attention (Liu et al. 2018, Radford et al. 2018).

        p(ids[i + 1] | ids[.. i]) = softmax(Decoder(Embeddings(ids))[i] E^T)

    Shapes: ids int64 [batch, length] -> scores of the token after each, [batch, length, V].

    Args:
        config: sizes and choices.
        attention: makes the attention modules instead; called with "decoder", once for each layer.
    """

    def __init__(self, config: LanguageModelConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        tokens = TokenEmbedding(config.vocab_size, config.d_model)
        self.embeddings = Embeddings(tokens, positions_from(config), dropout=config.dropout)
        self.decoder = decoder_from(config, attention, cross=False)

    def forward(
        self,
        ids: Tensor,
        *,
        lengths: Tensor | None = None,
        caches: DecoderCaches | None = None,
        mask: Mask | None = None,
    ) -> Tensor:
        """
        Args:
            lengths: with caches, int64 [batch], how many of these tokens are real. (Without, padding at the
                end needs no mask: no real token sees it.)
            caches: those of earlier tokens, from `caches()`; ids go on from there.
            mask: besides `Causal()`, such as `Documents` for texts packed in one row.
        """
        positions = None if caches is None else caches.next_positions(ids.shape[1], ids.device)
        x = self.embeddings(ids, positions=positions)
        check_lengths("lengths", lengths, ids.shape[0])
        kept = lengths if caches is not None else None
        x = self.decoder(x, mask=decoder_mask(self.config, mask), caches=caches, lengths=kept)
        return self.embeddings.tokens.logits(x)

    def caches(self) -> DecoderCaches:
        """Empty caches; with a window they keep no more than it reaches."""
        window = self.config.window
        return self.decoder.caches() if window is None else self.decoder.caches(lambda: RingCache(window))

    def stepper(self, prompts: Tensor, lengths: Tensor | None = None) -> TokenStepper:
        """What `greedy`, `beam_search` and `sample` continue these prompts with."""
        return TokenStepper(self, prompts, lengths)
