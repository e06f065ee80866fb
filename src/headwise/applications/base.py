"""What every application offers: settings, a task to train, and the trained model with its metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headwise.training.recipe import Recipe
from headwise.training.runs import Which
from headwise.training.task import Task

Say = Callable[[str], None]


class Settings(Protocol):
    """A frozen dataclass of plain values and further such dataclasses; one of them is the recipe.

    `--set key=value` changes it, and the run's config.json keeps it under "settings".
    """

    @property
    def recipe(self) -> Recipe: ...


@dataclass(frozen=True)
class Evaluation:
    """What a model reaches on held-out data.

    Attributes:
        figures: of the model, by name
        baselines: the same figures of something that has learned nothing, by its name
        outputs: {"input": ..., "output": ..., "reference": ...} of each example
        notes: what has to be known to read the figures, such as the metric's signature
    """

    split: str
    examples: int
    figures: Mapping[str, float]
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outputs: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()


def data_of(config: Mapping[str, Any], data: Sequence[Path] | None = None) -> list[Path]:
    """The data that is given, or where that of a run with this config was."""
    return [Path(path) for path in config["data"]["paths"]] if data is None else list(data)


def side_by_side(
    inputs: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> list[dict[str, str]]:
    """`Evaluation.outputs` of texts."""
    return [
        {"input": one, "output": written, "reference": right}
        for one, written, right in zip(inputs, outputs, references, strict=True)
    ]


class Trained(Protocol):
    """A model that was read from its run."""

    def evaluate(self, split: str, data: Sequence[Path] | None, options: Mapping[str, Any]) -> Evaluation:
        """The metric on a split.

        Args:
            split: such as "test"
            data: where it is; None: where the run's own data was
            options: of the application, such as {"beam": 4}

        Raises:
            DataError: the data can't be used.
            ValueError: an option that it doesn't have.
        """


class Application(Protocol):
    """One application. A module of this room hands one on as `APPLICATION`."""

    name: str
    about: str  # one line for the list of applications

    def settings(self) -> Settings:
        """The recipe that is recommended, and everything else that can be set."""

    def task(self, data: Sequence[Path], settings: Settings, run: Path | None, say: Say) -> Task:
        """Read the data and build what is trained.

        The task's config has "application", "settings" (`plain(settings)`, without the recipe) and "data"
        with "paths".

        Args:
            run: of a run that is continued: its tokenizer is taken.

        Raises:
            DataError: the data can't be used.
        """

    def open(self, run: Path, which: Which, say: Say) -> Trained:
        """The trained model of a run.

        Raises:
            RunError, CheckpointError: there is none that can be used.
        """
