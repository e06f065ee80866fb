"""Question answering: which span of a text answers a question.

data       SQuAD's format, or a table with the columns context, question and answer: see `questions`
tokenizer  byte-pair encoding, learned from texts and questions
model      `SpanReader`: [BOS] question [EOS] context [EOS], an encoder, two scores for each token
metric     exact answers, and F1 of their words, as SQuAD counts them
recipe     the paper's Adam and schedule, in sizes for two CPU cores
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headwise.applications import questions as asked
from headwise.applications.base import Evaluation, Say, data_of
from headwise.applications.clozes import asked_for, others
from headwise.applications.errors import DataError
from headwise.applications.intervals import bootstrap_interval
from headwise.applications.options import take
from headwise.applications.plain import from_plain, plain
from headwise.applications.questions import Question
from headwise.applications.reading import Read, answer, collate, read, scores
from headwise.applications.rouge import mean
from headwise.applications.tokens import Tokens, check_token_ids
from headwise.models.text_encoder import SpanReader, TextEncoderConfig
from headwise.training.batches import Collated, token_batches
from headwise.training.recipe import Recipe
from headwise.training.runs import LoadedRun, RunError, Which, load_run, read_config
from headwise.training.settings import SettingError
from headwise.training.task import Better, Loss

NAME = "question-answering"


def _recipe() -> Recipe:
    return Recipe(
        steps=20_000, rate=0.5, warmup=1000, precision="auto", clip=1.0, validate_every=1000, keep=8
    )


def _model() -> TextEncoderConfig:
    return TextEncoderConfig(
        vocab_size=8000, num_layers=4, d_model=192, d_ff=768, num_heads=8, dropout=0.1, norm="pre", segments=3
    )


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """Everything that `--set` can change.

    Args:
        max_tokens: cells of a batch, padding counted
        longest: question and text are cut to so many tokens together; training questions whose answers are
            cut off are left out
        longest_answer: tokens of an answer at most
        validation_texts: so many of the validation questions are answered at each validation
        lowercase: the vocabulary doesn't tell capital letters from small ones; answers keep theirs
        other_words: of clozes: in each epoch another word of the sentence is masked, if it stands in the text
        model: sizes; vocab_size is an upper bound
        recipe: how it is trained
    """

    max_tokens: int = 4000
    longest: int = 256
    longest_answer: int = 20
    validation_texts: int = 1000
    lowercase: bool = True
    other_words: bool = True
    model: TextEncoderConfig = field(default_factory=_model)
    recipe: Recipe = field(default_factory=_recipe)

    def __post_init__(self) -> None:
        for name in ("max_tokens", "longest", "longest_answer", "validation_texts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.longest > self.max_tokens:
            raise ValueError(
                f"longest is {self.longest} and max_tokens {self.max_tokens}: a batch must hold one question"
            )
        if self.model.segments not in (2, 3):
            raise ValueError(
                f"segments is {self.model.segments}: 2 tells question and text apart, 3 also the words that "
                "both have"
            )
        check_token_ids(self.model)


class QuestionTask:
    """What `train` trains.

    The loss of a question is -log p(start) - log p(end), where p adds up all places at which a right answer
    begins, or ends.
    """

    model: nn.Module
    metric = "exact"
    better: Better = "higher"
    counted = "questions"

    def __init__(
        self,
        model: SpanReader,
        tokens: Tokens,
        training: Sequence[Question],
        validation: Sequence[Question],
        settings: QuestionSettings,
        config: Mapping[str, Any],
    ) -> None:
        self.model, self.tokens, self.settings, self.config = model, tokens, settings, config
        words = asked_for(training) if settings.other_words else ()
        self._lengths, self._clozes = [], []
        for one in training:
            row = self._read(one)
            if row.spans:
                self._lengths.append(len(row.ids))
                self._clozes.append(others(one, words))
        self.left_out = len(training) - len(self._clozes)
        if not self._clozes:
            raise DataError(f"no answer stands in the first longest={settings.longest} tokens: raise longest")
        self._sample = validation[: settings.validation_texts]
        self._validation = [self._read(one) for one in self._sample]

    def _read(self, one: Question) -> Read:
        return read(one.question, one.context, one.starts, self.tokens, self.settings.longest)

    def batches(self, split: str, epoch: int, seed: int) -> Iterable[dict[str, Tensor]]:
        if split != "train":
            raise ValueError(f"there is no split {split!r} to train on")
        chance = random.Random(f"headwise question answering {seed} {epoch}")
        epochs = [chance.choice(some) for some in self._clozes]
        plan = token_batches(self._lengths, self.settings.max_tokens, seed=seed, epoch=epoch)

        def make(numbers: Sequence[int]) -> dict[str, Tensor]:
            rows = []
            for number in numbers:
                row = self._read(epochs[number])
                # an answer may stand where the text is cut off: the question as it was given has one
                rows.append(row if row.spans else self._read(self._clozes[number][0]))
            return collate(rows, self.settings.model.segments)

        return Collated(plan, make)

    def loss(self, batch: Mapping[str, Tensor]) -> Loss:
        total = torch.zeros((), device=batch["ids"].device)
        for found, right in zip(scores(self.model, batch), (batch["starts"], batch["ends"]), strict=True):
            log_p = found.log_softmax(-1).masked_fill(~right, -torch.inf)
            total = total - log_p.logsumexp(-1).sum()
        return total, len(batch["ids"]), {}

    def validate(self) -> dict[str, float]:
        written = answer(
            self.model,
            self._validation,
            [one.context for one in self._sample],
            kinds=self.settings.model.segments,
            cells=self.settings.max_tokens,
            longest_answer=self.settings.longest_answer,
        )
        return figures_of(written, self._sample, bootstrap=False)

    def write_files(self, run: Path) -> None:
        self.tokens.save(run)


def figures_of(
    written: Sequence[str], questions: Sequence[Question], *, bootstrap: bool = True
) -> dict[str, float]:
    """Exact answers and F1 of words, in percent, and 95% bootstrap intervals."""
    figures: dict[str, float] = {}
    for name, score in (("exact", asked.exact), ("f1", asked.overlap)):
        values = [100 * score(one, right.answers) for one, right in zip(written, questions, strict=True)]
        figures[name] = mean(values)
        if bootstrap and len(values) > 1:
            figures[f"{name}_low"], figures[f"{name}_high"] = bootstrap_interval(values, mean)
    return figures


class Answerer:
    """A trained model that answers.

    Attributes:
        model, tokens, settings: as trained
    """

    def __init__(self, loaded: LoadedRun, tokens: Tokens) -> None:
        self.folder, self.tokens, self.config = loaded.folder, tokens, loaded.config
        with loaded.reading() as config:
            self.settings = from_plain(QuestionSettings, config["settings"])
            model = SpanReader(TextEncoderConfig.from_dict(config["model"]))
        loaded.load_into(model)
        self.model = model.eval()

    def answer(self, question: str, context: str) -> str:
        """The span of the text that answers best; what stands beyond `longest` tokens isn't read.

        Raises:
            DataError: an empty question or text.
        """
        for name, text in (("question", question), ("text", context)):
            if not text.strip():
                raise DataError(f"the {name} is empty: give at least one word")
        return self._answer([Question(question, context, (), (), "")])[0]

    def _answer(self, questions: Sequence[Question]) -> list[str]:
        longest = self.settings.longest
        rows = [read(one.question, one.context, (), self.tokens, longest) for one in questions]
        return answer(
            self.model,
            rows,
            [one.context for one in questions],
            kinds=self.settings.model.segments,
            cells=self.settings.max_tokens,
            longest_answer=self.settings.longest_answer,
        )

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """Exact answers and F1 on a split, beside the most frequent word of the text.

        Options: limit (all questions).
        """
        chosen = take(options, limit=None)
        paths = data_of(self.config, data)
        questions = asked.load_questions(paths, split)[: chosen["limit"]]
        written = self._answer(questions)
        frequent = [asked.most_frequent(one) for one in questions]
        outputs = [
            {"input": f"{one.question}\n{one.context}", "output": output, "reference": one.answers[0]}
            for one, output in zip(questions, written, strict=True)
        ]
        return Evaluation(
            split,
            len(questions),
            figures_of(written, questions),
            {"most frequent word": figures_of(frequent, questions, bootstrap=False)},
            outputs,
            ["without case, punctuation and articles, as SQuAD counts"],
        )


class QuestionAnswering:
    """The application, for the registry."""

    name = NAME
    about = "find the span of a text that answers a question"

    def settings(self) -> QuestionSettings:
        return QuestionSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> QuestionTask:
        """See `Application.task`."""
        questions = {split: asked.load_questions(data, split) for split in ("train", "val")}
        say("read " + ", ".join(f"{len(one):,} questions for {split}" for split, one in questions.items()))
        texts = [text for one in questions["train"] for text in (one.question, one.context)]
        try:
            tokens = (
                Tokens.train(texts, settings.model.vocab_size, lowercase=settings.lowercase)
                if run is None
                else Tokens.load(run)
            )
            model = SpanReader(replace(settings.model, vocab_size=len(tokens)))
        except RunError:
            raise
        except (ValueError, TypeError) as error:
            raise SettingError(f"the settings make no model: {error}") from None
        described = {
            "application": NAME,
            "settings": plain(settings),
            "model": model.config.to_dict(),
            "data": _described(data, questions, run),
        }
        task = QuestionTask(model, tokens, questions["train"], questions["val"], settings, described)
        left = f", {task.left_out:,} questions left out whose answers are cut off" if task.left_out else ""
        size = sum(one.numel() for one in model.parameters())
        say(f"{len(tokens):,} tokens in the vocabulary, {size:,} parameters{left}")
        return task

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Answerer:
        return Answerer(load_run(run, which, warn=say), Tokens.load(run))


def _described(
    paths: Sequence[Path], questions: Mapping[str, Sequence[Question]], run: Path | None
) -> dict[str, Any]:
    facts = {
        split: {"questions": len(some), "sha256": asked.digest(some)} for split, some in questions.items()
    }
    places = [str(path.resolve()) for path in paths]
    before = {} if run is None else dict(read_config(run).get("data") or {})
    earlier = before.pop("paths", places)
    return {"paths": earlier if before == facts else places, **facts}


APPLICATION = QuestionAnswering()
