"""Summarization: texts and their summaries, the paper's Transformer, ROUGE.

data       a table with the columns text and summary, and perhaps group: see `records`
tokenizer  byte-pair encoding, one vocabulary for both
model      `Transformer` that may copy from the text (`Pointer`); texts are cut to `longest` tokens
metric     ROUGE-1, -2 and -L of rouge-score, stemmed, beside the first sentence
recipe     the paper's, in sizes for two CPU cores
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.applications.base import Evaluation, Say, data_of, side_by_side
from headwise.applications.options import take
from headwise.applications.pair_task import PairTask, check_sizes, pair_task
from headwise.applications.plain import from_plain
from headwise.applications.records import load_records
from headwise.applications.rouge import rouge_1, scores_of
from headwise.applications.text_files import Pairs
from headwise.applications.tokens import Tokens
from headwise.applications.writing import write_texts
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.training.recipe import Recipe
from headwise.training.runs import LoadedRun, Which, load_run

NAME = "summarization"
COLUMNS = ("text", "summary")
_END = re.compile(r"(?<=[.!?])\s+")


def _recipe() -> Recipe:
    # further checkpoints between validations, so that their average spans the end of a run and no more
    return Recipe(
        steps=20_000,
        rate=0.7,
        warmup=1000,
        precision="auto",
        clip=1.0,
        validate_every=1000,
        checkpoint_every=250,
        keep=8,
    )


def _model() -> TransformerConfig:
    return TransformerConfig(
        vocab_size=6000,
        num_layers=3,
        d_model=192,
        d_ff=768,
        num_heads=8,
        dropout=0.1,
        norm="pre",
        copy=True,
    )


@dataclass(frozen=True, kw_only=True)
class SummarizationSettings:
    """Everything that `--set` can change.

    Args:
        max_tokens: cells of a batch on each side, padding counted
        longest: texts are cut to so many tokens; pairs with a longer summary are left out of training
        longest_summary: tokens that a summary may be written with
        validation_texts: so many are summarized (greedily) at each validation
        model: sizes; vocab_size is an upper bound; copy=False leaves out the pointer
        recipe: how it is trained
    """

    max_tokens: int = 3000
    longest: int = 96
    longest_summary: int = 40
    validation_texts: int = 300
    model: TransformerConfig = field(default_factory=_model)
    recipe: Recipe = field(default_factory=_recipe)

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.longest_summary < 1:
            raise ValueError(f"longest_summary is {self.longest_summary}: it must be at least 1")
        if self.longest < 2:
            raise ValueError(f"longest is {self.longest}: a text needs a token besides what ends it")


class Summarizer:
    """A trained model that summarizes.

    Attributes:
        model, tokens, settings: as trained
    """

    def __init__(self, loaded: LoadedRun, tokens: Tokens) -> None:
        self.folder = loaded.folder
        self.tokens = tokens
        self.config = loaded.config
        with loaded.reading() as config:
            self.settings = from_plain(SummarizationSettings, config["settings"])
            model = Transformer(TransformerConfig.from_dict(config["model"]))
        loaded.load_into(model)
        self.model = model.eval()

    def summarize(self, texts: Sequence[str], *, beam: int = 4, alpha: float = 0.6) -> list[str]:
        """The best summary of each text; of an empty text, an empty one. Line breaks count as blanks."""
        flat = [" ".join(text.split()) for text in texts]
        settings = self.settings
        return write_texts(
            self.model,
            self.tokens,
            flat,
            beam=beam,
            alpha=alpha,
            max_length=settings.longest_summary,
            cut=settings.longest,
        )

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """ROUGE F1 on a split, with 95% intervals of 1,000 bootstrap samples, beside the first sentence.

        Options: beam (4), alpha (0.6), limit (all texts).
        """
        chosen = take(options, beam=4, alpha=0.6, limit=None)
        paths = data_of(self.config, data)
        pairs = load_pairs(paths, split)
        limit = chosen["limit"]
        pairs = Pairs(pairs.sources[:limit], pairs.targets[:limit])
        written = self.summarize(pairs.sources, beam=chosen["beam"], alpha=chosen["alpha"])
        lead = [first_sentence(text) for text in pairs.sources]
        outputs = side_by_side(pairs.sources, written, pairs.targets)
        return Evaluation(
            split,
            len(pairs),
            scores_of(written, pairs.targets),
            {"first sentence": scores_of(lead, pairs.targets, bootstrap=False)},
            outputs,
            ["rouge-score, F1 in percent, stemmed"],
        )


def first_sentence(text: str) -> str:
    """Up to the first full stop, question or exclamation mark that a blank follows."""
    return _END.split(text.strip(), maxsplit=1)[0]


def load_pairs(paths: Sequence[Path], split: str) -> Pairs:
    """Texts and summaries of a split; rows of one group are never in two.

    Raises:
        DataError: see `load_records`.
    """
    rows = load_records(paths, split, COLUMNS, group="group")
    flat = [[" ".join(row[name].split()) for row in rows] for name in COLUMNS]
    return Pairs(*flat)


class Summarization:
    """The application, for the registry."""

    name = NAME
    about = "write short summaries of texts, learned from texts and their summaries"

    def settings(self) -> SummarizationSettings:
        return SummarizationSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> PairTask:
        """See `Application.task`."""
        pairs = {split: load_pairs(data, split) for split in ("train", "val")}
        return pair_task(
            NAME,
            data,
            pairs,
            settings,
            run,
            say,
            metric="rouge1",
            score=rouge_1,
            cut=True,
            max_length=settings.longest_summary,
        )

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Summarizer:
        return Summarizer(load_run(run, which, warn=say), Tokens.load(run))


APPLICATION = Summarization()
