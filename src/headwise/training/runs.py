"""The folder of a run: config.json, metrics.jsonl, checkpoints, and what the task adds (tokenizer.json)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from headwise._version import __version__
from headwise.training.average import average_checkpoints
from headwise.training.checkpoint import (
    CheckpointError,
    checkpoint_folders,
    latest_checkpoint,
    load_checkpoint,
    read_state,
)
from headwise.training.files import replace_file, to_json
from headwise.training.machine import machine
from headwise.training.recipe import FREE_ON_RESUME, Recipe
from headwise.training.settings import nearest
from headwise.training.tensors import load_weights

FORMAT, VERSION = "headwise-run", 1
Which = Literal["best", "last", "average"]


class RunError(ValueError):
    """A run's folder that can't be used as asked, in one line."""


@dataclass(frozen=True)
class LoadedRun:
    """A run's config and weights.

    Attributes:
        config: of config.json: "application" and what builds the model are the task's own entries
        weights: by name
        step: of the checkpoint; the last one where several are averaged
        metrics: of the last validation before it
    """

    folder: Path
    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    step: int
    metrics: Mapping[str, float]

    @contextmanager
    def reading(self) -> Iterator[Mapping[str, Any]]:
        """The config, to build a model by.

        Raises:
            RunError: what is done with it finds that something is missing or wrong.
        """
        try:
            yield self.config
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{self.folder / 'config.json'} can't be used: {error}") from None

    def load_into(self, model: nn.Module) -> None:
        """Give a model these weights.

        Raises:
            ValueError: the model is another one.
        """
        load_weights(model, self.weights, f"run {self.folder}")


def load_run(
    run: Path, which: Which = "best", *, average: int = 5, warn: Callable[[str], None] = lambda line: None
) -> LoadedRun:
    """Read a run: config, and the weights of its best or last checkpoint, or the average of the last ones.

    Damaged checkpoints are passed over, and `warn` is told.

    Raises:
        RunError: no run, or no checkpoint in it yet.
        CheckpointError: there are checkpoints, and none is whole.
        ValueError: an unknown `which`.
    """
    if which not in ("best", "last", "average"):
        raise ValueError(f"which is {which!r}: choose best, last or average")
    run = Path(run)
    config = read_config(run)
    if which == "average":
        weights, steps = average_checkpoints(run, average, warn=warn)
        return LoadedRun(run, config, weights, steps[-1], {})
    best = best_name(run) if which == "best" else None
    if best is not None:
        try:
            found = load_checkpoint(run / "checkpoints" / best, with_optimizer=False)
            return LoadedRun(run, config, found.weights, found.step, found.state.get("metrics") or {})
        except CheckpointError as error:
            warn(f"{error}; taking the last good one")
    last = latest_checkpoint(run, with_optimizer=False, warn=warn)
    if last is None:
        raise RunError(f"run {run} has no checkpoint yet: train it for longer")
    return LoadedRun(run, config, last.weights, last.step, last.state.get("metrics") or {})


def best_name(run: Path) -> str | None:
    """The name of the best checkpoint, as the newest readable state says; None where none was validated."""
    for folder in reversed(checkpoint_folders(run)):
        try:
            best = read_state(folder).get("best")
        except CheckpointError:
            continue
        return best["name"] if best else None
    return None


def read_config(run: Path) -> dict[str, Any]:
    """The config.json of a run.

    Raises:
        RunError: there is none, it can't be read, or another version wrote it.
    """
    path = run / "config.json"
    if run.is_file():
        raise RunError(f"{run} is a file: give the folder of a run")
    if not run.is_dir():
        raise RunError(f"there is no run {run}: train one first, or check the path")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{run} is no run: it has no config.json") from None
    except (OSError, ValueError):
        raise RunError(f"{path} can't be read: it is damaged") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise RunError(f"{path} isn't of a headwise run")
    if config.get("version") != VERSION:
        raise RunError(
            f"{path} has format version {config.get('version')} (written by headwise "
            f"{config.get('headwise')}); this headwise, {__version__}, reads version {VERSION}"
        )
    return config


def write_config(run: Path, config: Mapping[str, Any], recipe: Recipe) -> None:
    """Write config.json: the task's config, the recipe, who wrote it, and on what machine."""
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "headwise": __version__,
        **config,
        "recipe": asdict(recipe),
        "machine": machine(),
    }
    replace_file(run / "config.json", to_json(whole))


def check_same(run: Path, config: Mapping[str, Any], recipe: Recipe) -> None:
    """See that a run is continued with what it was started with.

    How long it goes on and what is written may change; whatever changes a step's numbers may not.

    Raises:
        RunError: names the first difference.
    """
    before = read_config(run)
    old_recipe = before.get("recipe", {})
    for name, value in json.loads(to_json(asdict(recipe))).items():
        fixed = name not in FREE_ON_RESUME or (name == "steps" and recipe.schedule == "cosine")
        if fixed and name in old_recipe and old_recipe[name] != value:
            raise RunError(
                f"run {run} was started with {name}={old_recipe[name]}, and now it is {value}: "
                f"resume with --set {name}={old_recipe[name]}, or start another run"
            )
    for name, value in json.loads(to_json(config)).items():
        if name not in before:
            raise RunError(f"run {run} has no {name} in its config.json: {nearest(name, before)}")
        for path, old, new in _differences(before[name], value, name):
            raise RunError(
                f"run {run} was started with {path} {_short(old)}, and now it is {_short(new)}: "
                "resume with the same, or start another run"
            )


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two configs differ. What an older headwise didn't write had no other value then."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() <= new.keys():
        for name, value in old.items():
            yield from _differences(value, new[name], f"{path}.{name}")
    elif old != new:
        yield path, old, new


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
