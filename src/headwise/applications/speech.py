"""Speech recognition: sounds into digits or letters.

data       recordings with transcripts, see `headwise.applications.data_sounds`; digits are joined to strings
tokenizer  one token for each digit or letter
model      `SpeechTransformer` over log-mel features: CTC on the encoder, and a decoder beside it
metric     token error: substitutions, insertions and deletions for each token (jiwer)
recipe     AdamW with half a cosine; speed, loudness and blanked-out bands and frames anew in every epoch
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from headwise.applications.base import Say
from headwise.applications.data_sounds import Recording, Recordings, digest, load_recordings
from headwise.applications.joined_sounds import Disturbance, blank_out, join, strings_of
from headwise.applications.plain import plain
from headwise.applications.speech_model import FIRST_SYMBOL, Recogniser, features_of, hear, log_mel
from headwise.applications.speech_trained import Transcriber, Transcript, held_out_strings, token_errors
from headwise.applications.tokens import pad
from headwise.applications.vision_trained import one_path
from headwise.models.speech import SpeechConfig
from headwise.models.stack_config import Positions
from headwise.training.batches import Collated, token_batches
from headwise.training.loss import token_loss
from headwise.training.recipe import Recipe
from headwise.training.runs import Which, load_run
from headwise.training.settings import SettingError
from headwise.training.task import Better, Loss

NAME = "speech"


def _recipe() -> Recipe:
    return Recipe(
        steps=3000,
        schedule="cosine",
        rate=1.5e-3,
        warmup=200,
        weight_decay=0.01,
        clip=1.0,
        validate_every=300,
        keep=5,
    )


@dataclass(frozen=True, kw_only=True)
class SpeechSettings:
    """Everything that `--set` can change.

    Args:
        rate: samples per second; None: those of the first recording
        bands: of the log-mel features
        layers, decoder_layers, d_model, d_ff, heads, dropout: of the Transformer; decoder_layers=0 trains
            CTC alone
        halvings: convolutions that each halve the number of frames
        positions: "rotary", "sinusoidal", "learned" or "none" (at the start, sinusoids are several times as
            large as what the convolutions say, and CTC is slow to hear anything through them)
        joined: most digits in a string (letters are never joined)
        gap: seconds of silence between two of them, at most
        ctc_weight: share of CTC in the loss
        smoothing: of the decoder's targets
        max_frames: of a batch, padding counted
        decoder: which of the two validation counts
        validation_strings: how many
        disturbance: how sounds are changed in training
        recipe: how it is trained
    """

    rate: int | None = None
    bands: int = 40
    layers: int = 4
    decoder_layers: int = 2
    d_model: int = 128
    d_ff: int = 256
    heads: int = 4
    dropout: float = 0.1
    halvings: int = 2
    positions: Positions = "rotary"
    joined: int = 5
    gap: float = 0.1
    ctc_weight: float = 0.5
    smoothing: float = 0.1
    max_frames: int = 4000
    decoder: Literal["ctc", "attention"] = "ctc"
    validation_strings: int = 200
    disturbance: Disturbance = field(default_factory=Disturbance)
    recipe: Recipe = field(default_factory=_recipe)

    def __post_init__(self) -> None:
        for name in ("rate", "bands", "joined", "max_frames", "validation_strings"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if not 0 <= self.gap < 60:
            raise ValueError(f"gap is {self.gap}: it must be seconds, from 0 to less than 60")
        if not 0 < self.ctc_weight <= 1:
            raise ValueError(f"ctc_weight is {self.ctc_weight}: it must be more than 0 and at most 1")
        if self.ctc_weight == 1 and self.decoder_layers:
            raise ValueError("ctc_weight=1 leaves the decoder untrained: set decoder_layers=0 too")
        if self.decoder == "attention" and not self.decoder_layers:
            raise ValueError("decoder=attention needs decoder_layers of 1 or more")


class SpeechTask:
    """What `train` trains."""

    model: nn.Module
    metric = "token_error"
    better: Better = "lower"

    def __init__(
        self, model: Recogniser, recordings: Recordings, settings: SpeechSettings, config: Mapping[str, Any]
    ) -> None:
        self.model, self.recordings, self.settings, self.config = model, recordings, settings, config
        self.sizes = model.config
        self.mel = log_mel(config["sound"])
        self.ids = {symbol: FIRST_SYMBOL + number for number, symbol in enumerate(config["symbols"])}

    def batches(self, split: str, epoch: int, seed: int) -> Collated[dict[str, Tensor]]:
        if split != "train":
            raise ValueError(f"there is no split {split!r} to train on")
        found = self.recordings.splits["train"]
        settings, hop = self.settings, self.mel.hop
        chance = random.Random(f"headwise speech {seed} {epoch}")
        strings = strings_of(len(found), self.config["joined"], chance)
        # so long at most, whatever speed and silences will be drawn
        slowest, silence = 1 - settings.disturbance.speed, round(settings.gap * self.recordings.rate)
        lengths = [
            1 + int(sum(len(found[one].samples) / slowest + silence for one in string)) // hop
            for string in strings
        ]
        plan = token_batches(lengths, settings.max_frames, seed=seed, epoch=epoch)

        def collate(numbers: Sequence[int]) -> dict[str, Tensor]:
            sounds, texts, chances = [], [], []
            for number in numbers:
                # each string's own, so that a batch doesn't depend on those before it
                own = random.Random(f"headwise speech {seed} {epoch} {number}")
                string = [found[one] for one in strings[number]]
                sounds.append(
                    join(
                        string,
                        self.recordings.rate,
                        own,
                        gap=settings.gap,
                        disturbance=settings.disturbance,
                    )
                )
                texts.append([self.ids[symbol] for one in string for symbol in one.symbols])
                chances.append(own)
            features, frames = features_of(sounds, self.mel)
            for row, length, own in zip(features, frames.tolist(), chances, strict=True):
                blank_out(row, length, settings.disturbance, own)
            return {"features": features, "frames": frames, **self._targets(texts)}

        return Collated(plan, collate)

    def _targets(self, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        sizes = self.sizes
        after, lengths = pad([[*text, sizes.eos_id] for text in texts], sizes.pad_id)
        before, _ = pad([[sizes.bos_id, *text] for text in texts], sizes.pad_id)
        return {"before": before, "after": after, "lengths": lengths - 1}

    def loss(self, batch: Mapping[str, Tensor]) -> Loss:
        ctc, frames, decoder = self.model(batch["features"], batch["frames"], batch["before"])
        lengths, after = batch["lengths"], batch["after"]
        weight, pad_id = self.settings.ctc_weight, self.sizes.pad_id
        ctc_sum = F.ctc_loss(
            ctc.float().log_softmax(-1).transpose(0, 1),  # [frames, batch, V]
            after,
            frames,
            lengths,
            blank=pad_id,
            reduction="sum",
            zero_infinity=True,  # a string that is too long for its frames teaches nothing
        )
        count = int(lengths.sum())
        sums = {"ctc": ctc_sum.detach()}
        if decoder is None:
            return ctc_sum, count, sums
        found = token_loss(decoder, after, smoothing=self.settings.smoothing, pad_id=pad_id)
        # the decoder's tokens and the end of each text: as a mean, then as a sum over the same count
        attention = found.loss_sum * (count / found.tokens)
        sums["nll"] = found.nll_sum * (count / found.tokens)
        return weight * ctc_sum + (1 - weight) * attention, count, sums

    def validate(self) -> dict[str, float]:
        valid = self.recordings.splits["valid"]
        longest = self.config["joined"]
        strings = held_out_strings(valid, longest, self.settings.validation_strings)
        figures = {}
        model: Recogniser = self.model  # type: ignore[assignment]
        both = ("ctc", "attention") if self.settings.decoder_layers else ("ctc",)
        batches = list(self._validation(strings))
        texts = [[symbol for one in string for symbol in one.symbols] for string in strings]
        for decoder in both:
            heard = [ids for batch in batches for ids in hear(model, *batch, decoder=decoder, beam=1)]
            symbols = [[self.config["symbols"][one - FIRST_SYMBOL] for one in ids] for ids in heard]
            errors = token_errors(texts, symbols)
            figures[f"{decoder}_error"] = sum(errors) / sum(map(len, texts))
        return {"token_error": figures[f"{self.settings.decoder}_error"], **figures}

    def _validation(self, strings: Sequence[Sequence[Recording]]) -> Sequence[tuple[Tensor, Tensor]]:
        chance = random.Random("headwise speech valid")
        sounds = [join(one, self.recordings.rate, chance, gap=self.settings.gap) for one in strings]
        return [features_of(sounds[start : start + 32], self.mel) for start in range(0, len(sounds), 32)]


class Speech:
    """The application, for the registry."""

    name = NAME
    about = "write down what is said, learned from recordings with transcripts"

    def settings(self) -> SpeechSettings:
        return SpeechSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> SpeechTask:
        """See `Application.task`.

        Raises:
            DataError: see `load_recordings`.
            SettingError: sizes that make no model.
        """
        path = one_path(data)
        recordings = load_recordings(path, rate=settings.rate)
        for note in recordings.notes:
            say(note)
        splits = recordings.splits
        say(
            "read "
            + ", ".join(f"{len(found):,} recordings for {split}" for split, found in splits.items())
            + f", {recordings.rate:,} samples a second"
        )
        symbols = recordings.symbols
        sound: dict[str, Any] = {"rate": recordings.rate, "bands": settings.bands}
        try:
            mean, deviation = log_mel(sound).measure(one.samples for one in splits["train"])
            sound["statistics"] = {"mean": mean, "deviation": deviation}
            sizes = SpeechConfig(
                vocab_size=FIRST_SYMBOL + len(symbols),
                bands=settings.bands,
                halvings=settings.halvings,
                num_layers=settings.layers,
                decoder_layers=settings.decoder_layers,
                d_model=settings.d_model,
                d_ff=settings.d_ff,
                num_heads=settings.heads,
                dropout=settings.dropout,
                positions=settings.positions,
                ctc=True,
            )
            model = Recogniser(sizes)
        except (ValueError, TypeError) as error:
            raise SettingError(f"the settings make no model: {error}") from None
        counts: dict[str, Any] = {
            split: {"recordings": len(found), "sha256": digest(found)} for split, found in splits.items()
        }
        config: dict[str, Any] = {
            "application": NAME,
            "settings": plain(settings),
            "model": sizes.to_dict(),
            "sound": sound,
            "symbols": symbols,
            "joined_by": recordings.joined_by,
            "joined": settings.joined if recordings.joined_by else 1,
            "data": {"paths": [str(path.resolve())], **counts},
        }
        count = sum(one.numel() for one in model.parameters())
        say(f"{len(symbols)} symbols, {count:,} parameters")
        return SpeechTask(model, recordings, settings, config)

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Transcriber:
        return Transcriber(load_run(run, which, warn=say))


def transcribe(
    run: Path | str, files: Sequence[Path | str], *, decoder: str = "ctc", which: Which = "best"
) -> list[Transcript]:
    """What is said in wav files, by a trained run. (`Speech().open(run)` keeps the model for more calls.)

    Args:
        decoder: "ctc" or "attention"

    Raises:
        RunError, CheckpointError: the run can't be used.
        DataError: a file can't.
    """
    transcriber = APPLICATION.open(Path(run), which)
    return [transcriber.transcribe(file, decoder=decoder) for file in files]


APPLICATION = Speech()
