"""Training an encoder-decoder to write one text for another: what translation and summarization share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from headwise.applications.errors import DataError
from headwise.applications.plain import plain
from headwise.applications.text_files import Pairs, describe_data
from headwise.applications.tokens import Tokens, check_token_ids, pad
from headwise.applications.writing import encode_sources, write_texts
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.training.batches import Collated, token_batches
from headwise.training.loss import token_loss
from headwise.training.settings import SettingError
from headwise.training.task import Better, Loss

Score = Callable[[Sequence[str], Sequence[str]], float]


class PairSettings(Protocol):
    """What the task needs of an application's settings."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def longest(self) -> int: ...

    @property
    def validation_texts(self) -> int: ...

    @property
    def model(self) -> TransformerConfig: ...


def check_sizes(settings: PairSettings) -> None:
    """Raise ValueError for sizes below 1, for pairs that no batch can hold, for other special tokens."""
    for name in ("max_tokens", "longest", "validation_texts"):
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} is {getattr(settings, name)}: it must be at least 1")
    if settings.longest > settings.max_tokens:
        raise ValueError(
            f"longest is {settings.longest} and max_tokens {settings.max_tokens}: a batch must hold one pair"
        )
    check_token_ids(settings.model)


def vocabulary_and_model(
    settings: PairSettings, training: Pairs, run: Path | None
) -> tuple[Tokens, Transformer]:
    """The run's tokenizer, or one that is learned from the training texts, and an untrained model.

    Raises:
        SettingError: sizes that make no vocabulary or no model.
    """
    try:
        if run is None:
            tokens = Tokens.train((*training.sources, *training.targets), settings.model.vocab_size)
        else:
            tokens = Tokens.load(run)
    except ValueError as error:
        raise SettingError(str(error)) from None
    try:
        return tokens, Transformer(replace(settings.model, vocab_size=len(tokens)))
    except (ValueError, TypeError) as error:
        raise SettingError(f"the settings make no model: {error}") from None


class EncodedPairs:
    """Pairs as ids: the source ends with [EOS]; the target has [BOS] before it, or [EOS] after it.

    Args:
        cut: sources are cut off after so many tokens, with what ends them
    """

    def __init__(self, pairs: Pairs, tokens: Tokens, *, cut: int | None = None) -> None:
        self.sources = encode_sources(pairs.sources, tokens, cut=cut)
        self.targets = tokens.encode(pairs.targets)
        self._tokens = tokens

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """Of each pair, with what ends it."""
        return [(len(one), len(other) + 1) for one, other in zip(self.sources, self.targets, strict=True)]

    def collate(self, numbers: Sequence[int]) -> dict[str, Tensor]:
        """A batch of these pairs."""
        tokens = self._tokens
        source, lengths = pad([self.sources[one] for one in numbers])
        before, _ = pad([[tokens.bos_id, *self.targets[one]] for one in numbers])
        after, _ = pad([[*self.targets[one], tokens.eos_id] for one in numbers])
        return {"source": source, "source_lengths": lengths, "before": before, "after": after}


class PairTask:
    """What `train` trains.

    Args:
        score: of outputs beside references; chooses the best checkpoint under the name `metric`
        cut: sources are cut to `longest` tokens, rather than left out
        max_length: tokens of an output at most
    """

    model: nn.Module
    better: Better = "higher"

    def __init__(
        self,
        model: Transformer,
        tokens: Tokens,
        training: Pairs,
        validation: Pairs,
        *,
        settings: PairSettings,
        config: Mapping[str, Any],
        metric: str,
        score: Score,
        cut: bool = False,
        max_length: int | None = None,
    ) -> None:
        self.metric = metric
        self._score = score
        self._cut = settings.longest if cut else None
        self._max_length = max_length
        self.model = model
        self.tokens = tokens
        self.training = EncodedPairs(training, tokens, cut=self._cut)
        self.settings = settings
        self.config = config
        lengths = self.training.lengths
        self._used = [number for number, of_one in enumerate(lengths) if max(of_one) <= settings.longest]
        if not self._used:
            raise DataError(f"no pair has at most longest={settings.longest} tokens: raise longest")
        self._lengths = [lengths[number] for number in self._used]
        self.left_out = len(lengths) - len(self._used)
        self._validation = EncodedPairs(validation, tokens, cut=self._cut)
        some = slice(0, settings.validation_texts)
        self._sample = Pairs(validation.sources[some], validation.targets[some])

    def batches(self, split: str, epoch: int, seed: int) -> Iterable[dict[str, Tensor]]:
        if split != "train":
            raise ValueError(f"there is no split {split!r} to train on")
        plan = token_batches(self._lengths, self.settings.max_tokens, seed=seed, epoch=epoch)
        return Collated([[self._used[one] for one in batch] for batch in plan], self.training.collate)

    def loss(self, batch: Mapping[str, Tensor]) -> Loss:
        logits = self.model(batch["source"], batch["before"], batch["source_lengths"])
        found = token_loss(
            logits, batch["after"], smoothing=self.settings.model.label_smoothing, pad_id=self.tokens.pad_id
        )
        return found.loss_sum, found.tokens, {"nll": found.nll_sum}

    def validate(self) -> dict[str, float]:
        lengths = self._validation.lengths
        most = max(self.settings.max_tokens, max(map(max, lengths)))
        device = next(self.model.parameters()).device
        total, count = 0.0, 0
        for numbers in token_batches(lengths, most, shuffle=False):
            batch = {name: one.to(device) for name, one in self._validation.collate(numbers).items()}
            _, tokens, sums = self.loss(batch)
            total, count = total + float(sums["nll"]), count + int(tokens)
        written = write_texts(
            self.model, self.tokens, self._sample.sources, beam=1, cut=self._cut, max_length=self._max_length
        )
        return {
            "nll": total / count,
            "perplexity": math.exp(min(total / count, 700.0)),
            self.metric: self._score(written, self._sample.targets),
        }

    def write_files(self, run: Path) -> None:
        self.tokens.save(run)

    def describe(self, say: Callable[[str], None]) -> None:
        """Say how large the vocabulary and the model are, and what is left out."""
        size = sum(one.numel() for one in self.model.parameters())
        longer = f", {self.left_out:,} pairs longer than {self.settings.longest} left out"
        said = longer if self.left_out else ""
        say(f"{len(self.tokens):,} tokens in the vocabulary, {size:,} parameters{said}")


def pair_task(
    name: str,
    data: Sequence[Path],
    pairs: Mapping[str, Pairs],
    settings: Any,
    run: Path | None,
    say: Callable[[str], None],
    *,
    metric: str,
    score: Score,
    cut: bool = False,
    max_length: int | None = None,
) -> PairTask:
    """The task of an application `name`, from the pairs of "train" and "val"; what it is made of is said.

    See `Application.task` for data, run and say, and `PairTask` for the rest.

    Raises:
        SettingError: sizes that make no vocabulary or no model.
    """
    say("read " + ", ".join(f"{len(one):,} pairs for {split}" for split, one in pairs.items()))
    tokens, model = vocabulary_and_model(settings, pairs["train"], run)
    config = {
        "application": name,
        "settings": plain(settings),
        "model": model.config.to_dict(),
        "data": describe_data(data, pairs, run),
    }
    task = PairTask(
        model,
        tokens,
        pairs["train"],
        pairs["val"],
        settings=settings,
        config=config,
        metric=metric,
        score=score,
        cut=cut,
        max_length=max_length,
    )
    task.describe(say)
    return task
