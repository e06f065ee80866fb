"""Translation: sentence pairs, the paper's Transformer, BLEU.

data       two texts that fit line by line, see `headwise.applications.text_files`
tokenizer  byte-pair encoding, one vocabulary for both languages
model      `Transformer`
metric     BLEU and chrF of sacrebleu, on whole texts
recipe     the paper's Adam, schedule and label smoothing, in sizes for a small corpus and two CPU cores
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from headwise.applications.base import Evaluation, Say
from headwise.applications.bleu import corpus_bleu, scores_of
from headwise.applications.errors import DataError
from headwise.applications.options import take
from headwise.applications.plain import from_plain, plain
from headwise.applications.text_files import Pairs, describe_data, load_split
from headwise.applications.tokens import Tokens, check_token_ids, pad
from headwise.applications.writing import write_texts
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.training.batches import Collated, token_batches
from headwise.training.loss import token_loss
from headwise.training.recipe import Recipe
from headwise.training.runs import LoadedRun, RunError, Which, load_run
from headwise.training.settings import SettingError
from headwise.training.task import Better, Loss

NAME = "translation"


def _recipe() -> Recipe:
    return Recipe(
        steps=20_000,
        schedule="paper",
        rate=0.7,
        warmup=1000,
        precision="auto",
        clip=1.0,
        validate_every=500,
        keep=8,
    )


def _model() -> TransformerConfig:
    return TransformerConfig(
        vocab_size=5000,
        num_layers=3,
        d_model=256,
        d_ff=1024,
        num_heads=8,
        dropout=0.2,
        norm="pre",
    )


@dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """Everything that `--set` can change.

    Args:
        source, target: what the files' names end in, such as en and de
        max_tokens: cells of a batch on each side, padding counted
        longest: pairs with more tokens on either side are left out of training
        validation_texts: so many of the validation set are translated (greedily) at each validation; the
            loss is that of all of it
        model: sizes; vocab_size is an upper bound
        recipe: how it is trained
    """

    source: str = "en"
    target: str = "de"
    max_tokens: int = 1500
    longest: int = 100
    validation_texts: int = 500
    model: TransformerConfig = field(default_factory=_model)
    recipe: Recipe = field(default_factory=_recipe)

    def __post_init__(self) -> None:
        for name in ("max_tokens", "longest", "validation_texts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.longest > self.max_tokens:
            raise ValueError(
                f"longest is {self.longest} and max_tokens {self.max_tokens}: a batch must hold one pair"
            )
        check_token_ids(self.model)
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}: they must be two languages")


class EncodedPairs:
    """Pairs as ids: the source ends with [EOS]; the target has [BOS] before it, or [EOS] after it."""

    def __init__(self, pairs: Pairs, tokens: Tokens) -> None:
        self.sources = [[*ids, tokens.eos_id] for ids in tokens.encode(pairs.sources)]
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


class TranslationTask:
    """What `train` trains."""

    model: nn.Module
    metric = "bleu"
    better: Better = "higher"

    def __init__(
        self,
        model: Transformer,
        tokens: Tokens,
        training: EncodedPairs,
        validation: Pairs,
        settings: TranslationSettings,
        config: Mapping[str, Any],
    ) -> None:
        self.model = model
        self.tokens = tokens
        self.training = training
        self.settings = settings
        self.config = config
        lengths = training.lengths
        self._used = [number for number, of_one in enumerate(lengths) if max(of_one) <= settings.longest]
        if not self._used:
            raise DataError(f"no pair has at most longest={settings.longest} tokens: raise longest")
        self._lengths = [lengths[number] for number in self._used]
        self.left_out = len(lengths) - len(self._used)
        self._validation = EncodedPairs(validation, tokens)
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
        written = write_texts(self.model, self.tokens, self._sample.sources, beam=1)
        return {
            "nll": total / count,
            "perplexity": math.exp(min(total / count, 700.0)),
            "bleu": corpus_bleu(written, self._sample.targets),
        }

    def write_files(self, run: Path) -> None:
        self.tokens.save(run)


class Translator:
    """A trained model that translates.

    Attributes:
        model, tokens, settings: as trained
    """

    def __init__(self, loaded: LoadedRun, tokens: Tokens) -> None:
        self.folder = loaded.folder
        self.tokens = tokens
        self.config = loaded.config
        try:
            self.settings = from_plain(TranslationSettings, loaded.config["settings"])
            model = Transformer(TransformerConfig.from_dict(loaded.config["model"]))
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{loaded.folder / 'config.json'} can't be used: {error}") from None
        loaded.load_into(model)
        self.model = model.eval()

    def translate(
        self, texts: Sequence[str], *, beam: int = 4, alpha: float = 0.6, max_extra: int = 50
    ) -> list[str]:
        """The best translation of each text; of an empty text, an empty one.

        Args:
            beam, alpha, max_extra: see `headwise.models.decoding.beam_search`; beam 1 is greedy
        """
        return write_texts(self.model, self.tokens, texts, beam=beam, alpha=alpha, max_extra=max_extra)

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """BLEU and chrF on a split, with 95% intervals of 1,000 bootstrap samples, beside the source copied.

        Options: beam (4), alpha (0.6), limit (all texts).
        """
        chosen = take(options, beam=4, alpha=0.6, limit=None)
        paths = [Path(path) for path in self.config["data"]["paths"]] if data is None else data
        pairs = load_split(paths, split, (self.settings.source, self.settings.target))
        limit = chosen["limit"]
        pairs = Pairs(pairs.sources[:limit], pairs.targets[:limit])
        written = self.translate(pairs.sources, beam=chosen["beam"], alpha=chosen["alpha"])
        figures, signature = scores_of(written, pairs.targets)
        copied, _ = scores_of(pairs.sources, pairs.targets, bootstrap=False)
        outputs = [
            {"input": source, "output": output, "reference": target}
            for source, output, target in zip(pairs.sources, written, pairs.targets, strict=True)
        ]
        return Evaluation(split, len(pairs), figures, {"source copied": copied}, outputs, [signature])


class Translation:
    """The application, for the registry."""

    name = NAME
    about = "translate texts, learned from sentence pairs"

    def settings(self) -> TranslationSettings:
        return TranslationSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> TranslationTask:
        """See `Application.task`.

        Raises:
            DataError: files that are missing, empty, of other encodings, or don't fit line by line.
            SettingError: sizes that make no model.
        """
        languages = (settings.source, settings.target)
        pairs = {split: load_split(data, split, languages) for split in ("train", "val")}
        say("read " + ", ".join(f"{len(one):,} pairs for {split}" for split, one in pairs.items()))
        if run is None:
            texts = (*pairs["train"].sources, *pairs["train"].targets)
            try:
                tokens = Tokens.train(texts, settings.model.vocab_size)
            except ValueError as error:
                raise SettingError(str(error)) from None
        else:
            tokens = Tokens.load(run)
        try:
            config = replace(settings.model, vocab_size=len(tokens))
            model = Transformer(config)
        except (ValueError, TypeError) as error:
            raise SettingError(f"the settings make no model: {error}") from None
        described = {
            "application": NAME,
            "settings": plain(settings),
            "model": config.to_dict(),
            "data": describe_data(data, pairs, run),
        }
        task = TranslationTask(
            model, tokens, EncodedPairs(pairs["train"], tokens), pairs["val"], settings, described
        )
        left_out = (
            f", {task.left_out:,} pairs longer than {settings.longest} left out" if task.left_out else ""
        )
        size = sum(one.numel() for one in model.parameters())
        say(f"{len(tokens):,} tokens in the vocabulary, {size:,} parameters{left_out}")
        return task

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Translator:
        return Translator(load_run(run, which, warn=say), Tokens.load(run))


def translate(run: Path | str, texts: Sequence[str], *, beam: int = 4, which: Which = "best") -> list[str]:
    """Translate texts with a trained run. (`Translation().open(run)` keeps the model for more calls.)

    Raises:
        RunError, CheckpointError: the run can't be used.
    """
    return APPLICATION.open(Path(run), which).translate(texts, beam=beam)


APPLICATION = Translation()
