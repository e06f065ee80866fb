"""`train` for an application: from settings, data and a folder to a trained run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from headwise.applications.base import Application, Say, Settings, data_of
from headwise.applications.datasets import DATASETS
from headwise.applications.datasets.hub import bring, is_hub
from headwise.applications.errors import DataError
from headwise.applications.plain import from_plain
from headwise.training.loop import train
from headwise.training.random_state import seed_everything
from headwise.training.report import Report
from headwise.training.runs import RunError, read_config
from headwise.training.settings import with_settings


def train_application(
    application: Application,
    run: Path,
    data: Sequence[Path] = (),
    *,
    changes: Iterable[str] = (),
    budget_minutes: float | None = None,
    resume: bool = False,
    show: bool = True,
    file: TextIO | None = None,
    say: Say = lambda line: None,
) -> Report:
    """Train an application's model into a run's folder.

    A run that is resumed goes on with its own settings and data; `changes` and `data` need not be given
    again, and what would change its numbers is refused.

    Args:
        data: folders or files, as the application takes them, or a name of the Hugging Face hub (hub:...)
        changes: "key=value", see `headwise.training.with_settings`
        budget_minutes: minutes at most; steps and epochs of the recipe still end it
        file: where progress is shown; standard error where it isn't given
        say: is told what was read, a line at a time

    Raises:
        DataError: the data can't be used, or none was given.
        SettingError: a change that can't be made.
        RunError, CheckpointError, TrainingStopped, MissingExtra: see `headwise.training.train`.
    """
    going_on = resume and (run / "config.json").exists()
    settings: Settings = application.settings()
    if going_on:
        settings, before = _settings_of(application, settings, run)
        data = list(data) or before
    settings = with_settings(settings, changes)
    if budget_minutes is not None:
        settings = replace(settings, recipe=replace(settings.recipe, budget_minutes=budget_minutes))  # type: ignore[type-var]
    if not data:
        raise DataError(f"{application.name} has nothing to learn from: give --data")
    if not resume and (run / "config.json").exists():  # before the data is read
        raise RunError(f"{run} holds a run already: continue it with --resume, or choose another folder")
    data = local_data(data, application.name, say)
    seed_everything(settings.recipe.seed)
    task = application.task(data, settings, run if going_on else None, say)
    return train(task, settings.recipe, run, resume=resume, show=show, file=file)


def local_data(data: Sequence[Path], name: str, say: Say) -> list[Path]:
    """Data as the application called `name` takes it: what the Hugging Face hub has is brought here.

    Raises:
        DataError: it can't be brought; a dataset of `headwise data` that wasn't fetched.
        MissingExtra: `datasets` isn't installed.
    """
    for path in data:
        if str(path) in DATASETS and not path.exists():
            raise DataError(f"there is no {path} here: `headwise data {path}` brings it into data/{path}")
    return [bring(path, name, say) if is_hub(path) else path for path in data]


def _settings_of(application: Application, default: Settings, run: Path) -> tuple[Settings, list[Path]]:
    config = read_config(run)
    if config.get("application") != application.name:
        raise RunError(
            f"run {run} is of application {config.get('application')!r}, not {application.name!r}: "
            "resume it by its own name"
        )
    values: dict[str, Any] = {**config["settings"], "recipe": config["recipe"]}
    try:
        settings = from_plain(type(default), values)
    except (ValueError, TypeError) as error:
        raise RunError(f"{run / 'config.json'} has settings that can't be used: {error}") from None
    return settings, data_of(config)
