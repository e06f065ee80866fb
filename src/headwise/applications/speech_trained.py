"""A trained speech recogniser: what is said in a file, and how many tokens it gets wrong."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headwise.applications.base import Evaluation, data_of
from headwise.applications.data_sounds import Recording, load_recordings
from headwise.applications.errors import DataError
from headwise.applications.intervals import bootstrap_interval
from headwise.applications.joined_sounds import join
from headwise.applications.options import take
from headwise.applications.sound import read_wav
from headwise.applications.speech_model import DECODERS, FIRST_SYMBOL, Recogniser, features_of, hear, log_mel
from headwise.applications.vision_trained import one_path, split_named
from headwise.models.speech import SpeechConfig
from headwise.training.extras import need
from headwise.training.runs import LoadedRun, RunError

STRINGS = 500
"""Joined of held-out recordings for an evaluation."""


@dataclass(frozen=True)
class Transcript:
    """What was heard.

    Attributes:
        symbols: digits or letters
        text: the same as one text
        seconds: length of the sound
        notes: what was changed to read it
    """

    symbols: tuple[str, ...]
    text: str
    seconds: float
    notes: tuple[str, ...]


class Transcriber:
    """A trained model and the sound that it reads."""

    def __init__(self, loaded: LoadedRun) -> None:
        self.folder, self.config, self.step = loaded.folder, loaded.config, loaded.step
        with loaded.reading() as config:
            if config["application"] != "speech":
                raise ValueError(f"it is of application {config['application']!r}, not 'speech'")
            self.symbols: list[str] = config["symbols"]
            self.joined_by: str = config["joined_by"]
            self.joined: int = config["joined"]
            self.rate: int = config["sound"]["rate"]
            self.gap: float = config["settings"]["gap"]
            self.mel = log_mel(config["sound"])
            model = Recogniser(SpeechConfig.from_dict(config["model"]))
        loaded.load_into(model)
        self.model = model.eval()

    def hear(self, sounds: Sequence[Tensor], *, decoder: str = "ctc", beam: int = 4) -> list[list[str]]:
        """Symbols of sounds at the model's own rate; see `headwise.applications.speech_model.hear`."""
        heard: list[list[int]] = []
        for start in range(0, len(sounds), 32):
            features, frames = features_of(sounds[start : start + 32], self.mel)
            heard += hear(self.model, features, frames, decoder=decoder, beam=beam)
        return [[self.symbols[one - FIRST_SYMBOL] for one in ids] for ids in heard]

    def transcribe(self, file: Path | str, *, decoder: str = "ctc", beam: int = 4) -> Transcript:
        """What is said in a wav file; several channels are averaged, and any sample rate will do.

        Raises:
            DataError: it can't be read, or has no sound.
        """
        sound = read_wav(Path(file), rate=self.rate)
        symbols = tuple(self.hear([sound.samples], decoder=decoder, beam=beam)[0])
        return Transcript(symbols, self.joined_by.join(symbols), sound.seconds, sound.notes)

    def check_decoder(self, decoder: str) -> None:
        """See that the model can write so, before any sound is read.

        Raises:
            ValueError: another decoder than "ctc" and "attention".
            RunError: one that this model doesn't have.
        """
        if decoder not in DECODERS:
            raise ValueError(f"decoder is {decoder!r}: choose {' or '.join(DECODERS)}")
        if decoder == "attention" and not self.model.config.decoder_layers:
            raise RunError(f"run {self.folder} has no decoder (decoder_layers=0), so choose ctc")

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """Token error on strings that are joined from held-out recordings (the same strings every time), and
        accuracy on single ones; with 95 % intervals of 1,000 bootstrap samples.

        Options: decoder ("ctc"), beam (4, of the decoder "attention"), limit (500 strings, all recordings).
        """
        chosen = take(options, decoder="ctc", beam=4, limit=None)
        self.check_decoder(chosen["decoder"])
        part = split_named(split)
        path = one_path(data_of(self.config, data))
        recordings = load_recordings(path, rate=self.rate).splits[part][: chosen["limit"]]
        unknown = sorted({one for found in recordings for one in found.symbols} - set(self.symbols))
        if unknown:
            raise DataError(
                f"the transcripts have {' '.join(unknown)}, and the model knows {' '.join(self.symbols)}"
            )
        how = {"decoder": chosen["decoder"], "beam": chosen["beam"]}
        figures: dict[str, float] = {}
        baselines: dict[str, dict[str, float]] = {"nothing heard": {"token_error": 1.0}}
        singles = [list(one.symbols) for one in recordings]
        if self.joined > 1:
            heard = self.hear([one.samples for one in recordings], **how)
            right = [one == other for one, other in zip(heard, singles, strict=True)]
            low, high = bootstrap_interval(right, lambda rows: sum(rows) / len(rows))
            figures |= {"accuracy": sum(right) / len(right), "accuracy_low": low, "accuracy_high": high}
            commonest = max(self.symbols, key=lambda symbol: (singles.count([symbol]), symbol))
            baselines["commonest symbol"] = {"accuracy": singles.count([commonest]) / len(singles)}
            strings = held_out_strings(recordings, self.joined, chosen["limit"] or STRINGS)
        else:
            strings = [[one] for one in recordings]
        chance = random.Random(f"headwise speech {part}")
        sounds = [join(one, self.rate, chance, gap=self.gap) for one in strings]
        texts = [[symbol for one in string for symbol in one.symbols] for string in strings]
        heard = self.hear(sounds, **how)
        errors = token_errors(texts, heard)
        rows = list(zip(errors, map(len, texts), strict=True))
        low, high = bootstrap_interval(rows, _rate)
        figures |= {"token_error": _rate(rows), "token_error_low": low, "token_error_high": high}
        outputs = [
            {
                "input": " + ".join(one.name for one in string),
                "output": self.joined_by.join(out),
                "reference": self.joined_by.join(text),
            }
            for string, out, text in zip(strings, heard, texts, strict=True)
        ]
        notes = [f"decoder {chosen['decoder']}; {sum(map(len, texts)):,} tokens in {len(texts):,} strings"]
        if self.joined > 1:
            notes.append("strings are joined from recordings of single tokens: synthetic, not read in one go")
        return Evaluation(split, len(strings), figures, baselines, outputs, notes)


def _rate(rows: Sequence[tuple[int, int]]) -> float:
    """Errors for each token."""
    return sum(errors for errors, _ in rows) / sum(tokens for _, tokens in rows)


def held_out_strings(recordings: Sequence[Recording], longest: int, count: int) -> list[list[Recording]]:
    """`count` strings of 1 to `longest` recordings, the same every time; with longest=1, each once."""
    if longest == 1:
        return [[one] for one in recordings[:count]]
    chance = random.Random(f"headwise strings {longest}")
    return [chance.choices(recordings, k=chance.randint(1, longest)) for _ in range(count)]


def token_errors(texts: Sequence[Sequence[str]], heard: Sequence[Sequence[str]]) -> list[int]:
    """Substitutions, insertions and deletions that lead from each text to what was heard, the fewest."""
    jiwer = need("jiwer", "counting errors")
    names = {
        symbol: f"t{number}" for number, symbol in enumerate(sorted({s for t in (*texts, *heard) for s in t}))
    }
    found = []
    for text, out in zip(texts, heard, strict=True):
        if not out:
            found.append(len(text))
            continue
        # symbols as words, spaces among them
        counted = jiwer.process_words(" ".join(names[s] for s in text), " ".join(names[s] for s in out))
        found.append(counted.substitutions + counted.insertions + counted.deletions)
    return found
