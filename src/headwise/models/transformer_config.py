"""The sizes and choices of the paper's Transformer."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.models.stack_config import TokenConfig


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(TokenConfig):
    """Sizes and choices of a `Transformer`; the defaults are the paper's base model (table 3).

    Args:
        vocab_size: tokens of the vocabulary that source and target share.
        num_layers: N, layers of the encoder, and of the decoder.
        num_decoder_layers: where the decoder has another number of layers.
        share_embeddings: one matrix for source embedding, target embedding and the projection before the
            softmax (the paper, 3.4); False: three.
        label_smoothing: the share of probability that training spreads over all tokens (the paper, 5.4).
            The model itself has no use for it.
        copy: tokens of the source may be copied, see `Pointer`.

    The rest, and errors: see `TokenConfig` and `StackConfig`.
    """

    num_decoder_layers: int | None = None
    share_embeddings: bool = True
    label_smoothing: float = 0.1
    copy: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_sizes("num_decoder_layers")
        self.check_shares("label_smoothing")
        if not isinstance(self.copy, bool):
            raise TypeError(f"copy must be True or False, got {self.copy!r}")
