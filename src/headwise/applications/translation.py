"""Translation: sentence pairs, the paper's Transformer, BLEU.

data       two texts that fit line by line, see `headwise.applications.text_files`
tokenizer  byte-pair encoding, one vocabulary for both languages
model      `Transformer`
metric     BLEU and chrF of sacrebleu, on whole texts
recipe     the paper's Adam, schedule and label smoothing, in sizes for a small corpus and two CPU cores
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.applications.base import Evaluation, Say, data_of, side_by_side
from headwise.applications.bleu import corpus_bleu, scores_of
from headwise.applications.errors import DataError
from headwise.applications.nearest import LETTERS, Nearest
from headwise.applications.options import take
from headwise.applications.pair_task import PairTask, check_sizes, pair_task
from headwise.applications.plain import from_plain
from headwise.applications.text_files import Pairs, load_split
from headwise.applications.tokens import Tokens
from headwise.applications.writing import write_texts
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.training.recipe import Recipe
from headwise.training.runs import LoadedRun, Which, load_run

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
        check_sizes(self)
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}: they must be two languages")


class Translator:
    """A trained model that translates.

    Attributes:
        model, tokens, settings: as trained
    """

    def __init__(self, loaded: LoadedRun, tokens: Tokens) -> None:
        self.folder = loaded.folder
        self.tokens = tokens
        self.config = loaded.config
        with loaded.reading() as config:
            self.settings = from_plain(TranslationSettings, config["settings"])
            model = Transformer(TransformerConfig.from_dict(config["model"]))
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
        """BLEU and chrF on a split, with 95% intervals of 1,000 bootstrap samples, beside the source copied
        and the translation of the most similar training source (see `Nearest`).

        Options: beam (4), alpha (0.6), limit (all texts).
        """
        chosen = take(options, beam=4, alpha=0.6, limit=None)
        paths = data_of(self.config, data)
        pairs = load_split(paths, split, (self.settings.source, self.settings.target))
        limit = chosen["limit"]
        pairs = Pairs(pairs.sources[:limit], pairs.targets[:limit])
        written = self.translate(pairs.sources, beam=chosen["beam"], alpha=chosen["alpha"])
        figures, signature = scores_of(written, pairs.targets)
        guesses = {"source copied": pairs.sources}
        notes = [signature]
        try:
            guesses["nearest neighbour"] = self.nearest(pairs.sources)
            notes.append(
                "nearest neighbour: translation of the training source with the most similar letters "
                f"(TF-IDF of {LETTERS} letters in a row, cosine)"
            )
        except DataError as error:
            notes.append(f"no nearest neighbour, since the training texts can't be read: {error}")
        baselines = {
            name: scores_of(guess, pairs.targets, bootstrap=False)[0] for name, guess in guesses.items()
        }
        outputs = side_by_side(pairs.sources, written, pairs.targets)
        return Evaluation(split, len(pairs), figures, baselines, outputs, notes)

    def nearest(self, texts: Sequence[str]) -> list[str]:
        """Of each text, the translation that the most similar source of the run's training data has.

        Raises:
            DataError: the training data isn't where it was.
        """
        known = load_split(data_of(self.config), "train", (self.settings.source, self.settings.target))
        return [known.targets[row] for row in Nearest(known.sources).find(texts)]


class Translation:
    """The application, for the registry."""

    name = NAME
    about = "translate texts, learned from sentence pairs"

    def settings(self) -> TranslationSettings:
        return TranslationSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> PairTask:
        """See `Application.task`.

        Raises:
            DataError: files that are missing, empty, of other encodings, or don't fit line by line.
            SettingError: sizes that make no model.
        """
        languages = (settings.source, settings.target)
        pairs = {split: load_split(data, split, languages) for split in ("train", "val")}
        return pair_task(NAME, data, pairs, settings, run, say, metric="bleu", score=corpus_bleu)

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Translator:
        return Translator(load_run(run, which, warn=say), Tokens.load(run))


def translate(run: Path | str, texts: Sequence[str], *, beam: int = 4, which: Which = "best") -> list[str]:
    """Translate texts with a trained run. (`Translation().open(run)` keeps the model for more calls.)

    Raises:
        RunError, CheckpointError: the run can't be used.
    """
    return APPLICATION.open(Path(run), which).translate(texts, beam=beam)


APPLICATION = Translation()
