"""Speech recognition: the paper's encoder and decoder over sound."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.cache import RingCache
from headwise.masks import KeyLengths
from headwise.models.building import (
    AttentionFactory,
    decoder_from,
    decoder_mask,
    encoder_from,
    encoder_mask,
)
from headwise.models.checks import check_lengths
from headwise.models.decoder import Decoder
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.decoding.steppers import MemoryStepper, check_mode
from headwise.models.dropping import dropped
from headwise.models.embeddings import Embeddings, TokenEmbedding, positions_from
from headwise.models.encoder import Norm
from headwise.models.stack_config import TokenConfig


@dataclass(frozen=True, kw_only=True)
class SpeechConfig(TokenConfig):
    """Sizes and choices of a `SpeechTransformer`: as `TokenConfig`, but pre-norm.

    Args:
        bands: width of a frame of features (see `LogMel`).
        halvings: convolutions of the front end, each of which halves the number of frames.
        decoder_layers: layers of the decoder; 0 for none (then `ctc` reads the encoder alone).
        ctc: a head on the encoder, trained by connectionist temporal classification (Graves et al. 2006).
            Its blank is pad_id.
    """

    bands: int = 80
    halvings: int = 2
    decoder_layers: int = 6
    ctc: bool = False
    norm: Norm = "pre"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_sizes("bands")
        self.check_sizes("halvings", "decoder_layers", least=0)
        if not self.decoder_layers and not self.ctc:
            raise ValueError("decoder_layers=0 and ctc=False leave nothing that writes: set one of them")


class FrontEnd(nn.Module):
    """Convolutions over time, each of width 3, with gelu, halving the number of frames (with halvings=0: one
    that leaves it).

    Every frame beyond a sound's length is 0 before each convolution, so that padding changes nothing.

    Shapes: [batch, frames, bands] and int64 [batch] -> [batch, frames', d_model] and int64 [batch], where
    each halving makes n frames (n + 1) // 2.
    """

    def __init__(self, bands: int, d_model: int, halvings: int) -> None:
        super().__init__()
        self.stride = 2 if halvings else 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(d_model if index else bands, d_model, 3, stride=self.stride, padding=1)
            for index in range(max(halvings, 1))
        )

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = x.transpose(1, 2)  # [batch, bands, frames]
        for convolution in self.convolutions:
            x = nn.functional.gelu(convolution(x * _real(x, lengths)))
            lengths = (lengths + self.stride - 1) // self.stride
        return x.transpose(1, 2), lengths


def _real(x: Tensor, lengths: Tensor) -> Tensor:
    """[batch, 1, frames]: 1 for real frames, 0 for padding."""
    return (torch.arange(x.shape[-1], device=x.device) < lengths[:, None])[:, None].to(x.dtype)


class SpeechTransformer(nn.Module):
    """From features of sound to tokens.

        memory = Encoder(Dropout(FrontEnd(features) + positions))
        logits = Decoder(Embeddings(target), memory) E^T           and, with ctc, W memory + b

    (After Dong et al. 2018, *Speech-Transformer*, with the convolutions of Radford et al. 2022.)

    Shapes: features [batch, frames, bands] -> logits [batch, T, V]; ctc_logits [batch, frames', V].

    Args:
        attention: makes the attention modules instead; called with "encoder", "decoder" or "cross".
    """

    def __init__(self, config: SpeechConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        self.front_end = FrontEnd(config.bands, config.d_model, config.halvings)
        self.positions = positions_from(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = encoder_from(config, attention)
        self.ctc = nn.Linear(config.d_model, config.vocab_size) if config.ctc else None
        self.target_embeddings: Embeddings | None = None
        self.decoder: Decoder | None = None
        if config.decoder_layers:
            self.target_embeddings = Embeddings(
                TokenEmbedding(config.vocab_size, config.d_model),
                positions_from(config),
                dropout=config.dropout,
                name="target",
            )
            self.decoder = decoder_from(config, attention, num_layers=config.decoder_layers)

    def _writer(self) -> tuple[Embeddings, Decoder]:
        if self.target_embeddings is None or self.decoder is None:
            raise ValueError("this model has no decoder (decoder_layers=0): read its ctc_logits")
        return self.target_embeddings, self.decoder

    def encode(self, features: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The memory [batch, frames', d_model], and how many of its frames are real, int64 [batch].

        Args:
            lengths: int64 [batch], how many frames of features are real. Default: all.
        """
        if features.ndim != 3 or features.shape[2] != self.config.bands:
            raise ValueError(
                f"features.shape={tuple(features.shape)}: this model reads [batch, frames, "
                f"{self.config.bands}]"
            )
        check_lengths("lengths", lengths, features.shape[0])
        if lengths is None:
            lengths = torch.full((features.shape[0],), features.shape[1], device=features.device)
        if not features.shape[1]:  # a convolution needs a frame; it isn't a real one
            features = features.new_zeros(features.shape[0], 1, self.config.bands)
        x, lengths = self.front_end(features, lengths)
        if self.positions is not None:
            x = self.positions(x)
        mask = encoder_mask(self.config, KeyLengths(lengths))
        memory: Tensor = self.encoder(dropped(self.dropout, x), mask=mask)
        return memory, lengths

    def decode(
        self,
        target: Tensor,
        memory: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        *,
        caches: DecoderCaches | None = None,
    ) -> Tensor:
        """Scores of the token after each target token; see `Transformer.decode`."""
        embeddings, decoder = self._writer()
        positions = None if caches is None else caches.next_positions(target.shape[1], target.device)
        x = embeddings(target, positions=positions)
        x = decoder(
            x, memory, memory_lengths=memory_lengths, mask=decoder_mask(self.config, None), caches=caches
        )
        return embeddings.tokens.logits(x)

    def ctc_logits(self, memory: Tensor) -> Tensor:
        """Scores of every token, and of the blank (pad_id), for each frame of the memory."""
        if self.ctc is None:
            raise ValueError("this model has no CTC head: build it with ctc=True")
        out: Tensor = self.ctc(memory)
        return out

    def forward(self, features: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Scores of the token after each target token."""
        memory, memory_lengths = self.encode(features, lengths)
        return self.decode(target, memory, memory_lengths)

    def caches(self) -> DecoderCaches:
        """Empty caches for `decode`."""
        window = self.config.window
        _, decoder = self._writer()
        return decoder.caches() if window is None else decoder.caches(lambda: RingCache(window))

    def stepper(self, features: Tensor, lengths: Tensor | None = None) -> MemoryStepper:
        """What `greedy`, `beam_search` and `sample` decode with."""
        check_mode(self)
        self._writer()  # refused before the sound is read
        with torch.no_grad():
            memory, memory_lengths = self.encode(features, lengths)
        return MemoryStepper(self, memory, memory_lengths)
