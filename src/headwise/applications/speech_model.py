"""What speech recognition trains: features of sound, an encoder with CTC, and a decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headwise.models.decoding import beam_search, ctc_greedy
from headwise.models.log_mel import LogMel
from headwise.models.speech import SpeechConfig, SpeechTransformer

DECODERS = ("ctc", "attention")
FIRST_SYMBOL = 3
"""0 is padding and CTC's blank, 1 begins a text, 2 ends it."""


class Scores(NamedTuple):
    """CTC's scores [batch, frames', V], how many of its frames are real, the decoder's [batch, T, V]."""

    ctc: Tensor
    lengths: Tensor
    decoder: Tensor | None


class Recogniser(nn.Module):
    """A `SpeechTransformer` whose CTC head and decoder read one memory in one call.

    Its keys in a checkpoint are those of `SpeechTransformer`, after "speech.".
    """

    def __init__(self, config: SpeechConfig) -> None:
        super().__init__()
        self.config = config
        self.speech = SpeechTransformer(config)

    def forward(self, features: Tensor, lengths: Tensor, before: Tensor) -> Scores:
        memory, memory_lengths = self.speech.encode(features, lengths)
        ctc = self.speech.ctc_logits(memory)
        if not self.config.decoder_layers:
            return Scores(ctc, memory_lengths, None)
        return Scores(ctc, memory_lengths, self.speech.decode(before, memory, memory_lengths))


def hear(
    model: Recogniser, features: Tensor, lengths: Tensor, *, decoder: str = "ctc", beam: int = 4
) -> list[list[int]]:
    """Symbols (ids from FIRST_SYMBOL on) of a batch of sounds: by the likeliest class of each frame, or by
    the decoder.

    Raises:
        ValueError: another decoder than "ctc" and "attention", or one that the model doesn't have.
    """
    if decoder not in DECODERS:
        raise ValueError(f"decoder is {decoder!r}: choose {' or '.join(DECODERS)}")
    device = next(model.parameters()).device
    features, lengths = features.to(device), lengths.to(device)
    with torch.no_grad():
        if decoder == "ctc":
            memory, lengths = model.speech.encode(features, lengths)
            written = ctc_greedy(model.speech.ctc_logits(memory), lengths)
        elif model.config.decoder_layers:
            found = beam_search(model.speech.stepper(features, lengths), beam=beam, max_extra=0)
            written = [hypotheses[0].tokens for hypotheses in found]
        else:
            raise ValueError('the model has no decoder (decoder_layers=0): choose decoder "ctc"')
    # Padding, beginning and end are classes too, and a model that has learned little may choose them.
    return [[one for one in ids if one >= FIRST_SYMBOL] for ids in written]


def features_of(sounds: Sequence[Tensor], mel: LogMel) -> tuple[Tensor, Tensor]:
    """Log-mel features [batch, frames, bands] of sounds of unequal length, and how many frames are real."""
    lengths = torch.tensor([len(one) for one in sounds])
    with torch.no_grad():
        features, frames = mel(nn.utils.rnn.pad_sequence(list(sounds), batch_first=True), lengths)
    return features, frames


def log_mel(sound: Mapping[str, Any]) -> LogMel:
    """The front end of a config's "sound" entry."""
    found = sound.get("statistics")  # runs of before have none
    return LogMel(
        sound["rate"],
        bands=sound["bands"],
        statistics=None if found is None else (found["mean"], found["deviation"]),
    )
