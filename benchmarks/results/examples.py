"""The outputs of an evaluation: how good each is, which five are shown, and how the model runs on one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from headwise.applications import questions as asked
from headwise.applications import rouge
from headwise.applications.data_images import ImageSet, load_images
from headwise.applications.data_sounds import load_recordings
from headwise.applications.joined_sounds import join
from headwise.applications.question_answering import read
from headwise.applications.speech_model import FIRST_SYMBOL, features_of
from headwise.applications.speech_trained import STRINGS, held_out_strings, token_errors
from headwise.applications.writing import encode_sources
from headwise.training.extras import need

Output = Mapping[str, str]


class Examples(Protocol):
    """The outputs of a run on held-out inputs.

    Attributes:
        model: in eval mode
        score: what `scores` are, in words
    """

    model: Any
    score: str
    outputs: Sequence[Output]

    def scores(self) -> list[float]:
        """How good each output is; higher is better."""

    def right(self, scores: Sequence[float]) -> list[bool]:
        """Whether each output is all that it could be."""

    def run(self, number: int) -> None:
        """Let the model read one input alone, and its own output where it writes any."""

    def labels(self, number: int) -> tuple[list[str], list[str]]:
        """What stands at each place of one input and of what is written, for pictures."""


class Texts:
    """Translations and summaries."""

    def __init__(self, trained: Any, outputs: Sequence[Output], *, cut: int | None, summaries: bool) -> None:
        self.model, self.tokens, self.outputs = trained.model, trained.tokens, outputs
        self._cut, self._summaries = cut, summaries
        self.score = "ROUGE-L of the one summary" if summaries else "chrF of the one sentence"

    def scores(self) -> list[float]:
        written = [one["output"] for one in self.outputs]
        references = [one["reference"] for one in self.outputs]
        if self._summaries:
            return rouge.each(written, references)["rouge_l"]
        metric = need("sacrebleu.metrics", "translation").CHRF()
        return [
            float(metric.sentence_score(one, [other]).score)
            for one, other in zip(written, references, strict=True)
        ]

    def right(self, scores: Sequence[float]) -> list[bool]:
        return [score > 100 - 1e-9 for score in scores]

    def _ids(self, number: int) -> tuple[list[int], list[int]]:
        source = encode_sources([self.outputs[number]["input"].strip()], self.tokens, cut=self._cut)[0]
        return source, [self.tokens.bos_id, *self.tokens.encode([self.outputs[number]["output"]])[0]]

    def run(self, number: int) -> None:
        source, written = self._ids(number)
        self.model(torch.tensor([source]), torch.tensor([written]))

    def labels(self, number: int) -> tuple[list[str], list[str]]:
        """Of the written ones, each is the token that the model writes *there*, having read those before."""
        source, written = self._ids(number)
        return self.tokens.pieces(source), self.tokens.pieces([*written[1:], self.tokens.eos_id])


class Answers:
    """Spans that answer questions."""

    score = "F1 of words of the one answer"

    def __init__(self, trained: Any, outputs: Sequence[Output]) -> None:
        self.model, self.tokens, self.outputs = trained.model, trained.tokens, outputs
        self._longest = trained.settings.longest

    def scores(self) -> list[float]:
        return [100 * asked.overlap(one["output"], (one["reference"],)) for one in self.outputs]

    def right(self, scores: Sequence[float]) -> list[bool]:
        return [score > 100 - 1e-9 for score in scores]

    def _read(self, number: int) -> Any:
        question, _, context = self.outputs[number]["input"].partition("\n")
        return read(question, context, (), self.tokens, self._longest)

    def run(self, number: int) -> None:
        found = self._read(number)
        count = len(found.ids)
        inside = torch.tensor([[found.begins <= place < count - 1 for place in range(count)]])
        self.model(torch.tensor([found.ids]), segments=inside.long(), allowed=inside)

    def labels(self, number: int) -> tuple[list[str], list[str]]:
        return self.tokens.pieces(self._read(number).ids), []


class Images:
    """Classes of images."""

    score = "the probability that was given to the right class"

    def __init__(self, trained: Any, outputs: Sequence[Output], data: Path) -> None:
        self.model, self.outputs, self._trained = trained.model, outputs, trained
        sizes = trained.model.config
        self.images: ImageSet = load_images(data, size=sizes.image_size, channels=sizes.channels)["test"]
        if len(self.images) != len(outputs):
            raise ValueError(f"{len(outputs)} outputs and {len(self.images)} images: evaluate the run again")

    def pixels(self, number: int) -> Tensor:
        """[1, channels, height, width], 0 to 1."""
        return self.images.images[number : number + 1].float() / 255

    def scores(self) -> list[float]:
        found: list[float] = []
        for rows, labels in zip(self.images.images.split(256), self.images.labels.split(256), strict=True):
            shares = self._trained.logits(rows.float() / 255).softmax(-1)
            found += shares.gather(1, labels[:, None])[:, 0].tolist()
        return found

    def right(self, scores: Sequence[float]) -> list[bool]:
        return [one["output"] == one["reference"] for one in self.outputs]

    def run(self, number: int) -> None:
        self._trained.logits(self.pixels(number))

    def labels(self, number: int) -> tuple[list[str], list[str]]:
        return [], []


class Sounds:
    """Strings of recordings, as an evaluation joins them."""

    score = "1 - token error of the one string"

    def __init__(self, trained: Any, outputs: Sequence[Output], data: Path) -> None:
        self.model, self.outputs, self._trained = trained.model, outputs, trained
        recordings = load_recordings(data, rate=trained.rate).splits["test"]
        joined = trained.joined > 1
        strings = held_out_strings(recordings, trained.joined, STRINGS if joined else len(recordings))
        names = [" + ".join(one.name for one in string) for string in strings]
        if names != [one["input"] for one in outputs]:
            raise ValueError("the outputs are of other sounds than the data: evaluate the run again")
        chance = random.Random("headwise speech test")
        self.sounds = [join(one, trained.rate, chance, gap=trained.gap) for one in strings]

    def _symbols(self, text: str) -> list[str]:
        return text.split() if self._trained.joined_by else list(text)

    def scores(self) -> list[float]:
        right = [self._symbols(one["reference"]) for one in self.outputs]
        errors = token_errors(right, [self._symbols(one["output"]) for one in self.outputs])
        return [1 - wrong / len(text) for wrong, text in zip(errors, right, strict=True)]

    def right(self, scores: Sequence[float]) -> list[bool]:
        return [score > 1 - 1e-9 for score in scores]

    def run(self, number: int) -> None:
        features, frames = features_of([self.sounds[number]], self._trained.mel)
        heard = self._symbols(self.outputs[number]["output"])
        ids = [FIRST_SYMBOL + self._trained.symbols.index(one) for one in heard]
        self.model(features, frames, torch.tensor([[self.model.config.bos_id, *ids]]))

    def labels(self, number: int) -> tuple[list[str], list[str]]:
        return [], [*self._symbols(self.outputs[number]["output"]), "[EOS]"]


def examples_of(name: str, trained: Any, outputs: Sequence[Output], data: Sequence[Path]) -> Examples:
    """The examples of an application."""
    if name == "vision":
        return Images(trained, outputs, data[0])
    if name == "speech":
        return Sounds(trained, outputs, data[0])
    if name == "question-answering":
        return Answers(trained, outputs)
    summaries = name == "summarization"
    return Texts(trained, outputs, cut=trained.settings.longest if summaries else None, summaries=summaries)


@dataclass(frozen=True)
class Choice:
    """Which outputs are shown: (word, number) of each, and the rule by which they were chosen."""

    rows: tuple[tuple[str, int], ...]
    rule: str


def choose(scores: Sequence[float], right: Sequence[bool], what: str) -> Choice:
    """Five outputs: the best, the worst and the quartiles between; where more than half are right, those
    would say little: then two right ones, and the best, the middle and the worst of the others.

    Among equals the one that comes first counts as better.
    """
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    flawed = [number for number in order if not right[number]]
    fine = [number for number in range(len(scores)) if right[number]]
    if len(fine) <= len(flawed):
        words = ("best", "upper quartile", "median", "lower quartile", "worst")
        rows = [(word, order[round((len(order) - 1) * part / 4)]) for part, word in enumerate(words)]
        return Choice(tuple(rows), f"by {what}: the best, the worst and the quartiles of all {len(order):,}")
    rows = [("right", number) for number in sorted({fine[0], fine[-1]})]
    places = {"the best": 0, "the middle": len(flawed) // 2, "the worst": len(flawed) - 1}
    if flawed:
        named = {place: f"wrong, {word}" for word, place in reversed(places.items())}
        rows += [(named[place], flawed[place]) for place in sorted(named)]
    rule = (
        f"{len(fine):,} of {len(order):,} are right: the first and the last of these, and of the "
        f"{len(flawed):,} others, by {what}, the best, the middle and the worst"
    )
    return Choice(tuple(rows), rule)
