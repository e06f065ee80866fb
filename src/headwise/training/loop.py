"""`train`: a task, a recipe, a folder."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import torch

from headwise.training.extras import need
from headwise.training.parallel import Processes
from headwise.training.progress import Progress
from headwise.training.recipe import Recipe
from headwise.training.report import Report
from headwise.training.stop import StopRequests
from headwise.training.task import Task
from headwise.training.trainer import Trainer

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def train(
    task: Task,
    recipe: Recipe,
    run: Path | str,
    *,
    resume: bool = False,
    budget_minutes: float | None = None,
    show: bool = True,
    file: TextIO | None = None,
) -> Report:
    """Train a task's model by a recipe, into a folder.

    A run that was stopped or killed continues with resume=True where its last checkpoint was written, to the
    same numbers that it would have found without the stop (bit for bit on a CPU, with as many threads and
    processes). Seed before you build the model (`seed_everything(recipe.seed)`).

    Args:
        task: model, data, loss and validation
        recipe: how
        run: the folder; new, or with resume=True that of a run
        resume: go on with a run; from the start where it has no checkpoint yet
        budget_minutes: in place of the recipe's
        show: say anything at all
        file: where to; standard error where it isn't given

    Raises:
        RunError: the folder holds a run already (without resume), or one that was started otherwise.
        CheckpointError: there are checkpoints, and none can be used.
        TrainingStopped: Ctrl-C, SIGTERM, a loss that isn't finite, a full disk, no memory. The last good
            checkpoint stays.
        MissingExtra: accelerate, safetensors or tensorboard is needed and isn't installed.
        ValueError: settings or figures that don't fit the task.
    """
    if budget_minutes is not None:
        recipe = replace(recipe, budget_minutes=budget_minutes)
    need("safetensors", "training")
    processes = Processes(recipe.device, shard=recipe.shard)
    with StopRequests() as requests, Progress(show=show and processes.first, file=file) as progress:
        trainer = Trainer(task, recipe, Path(run), processes, progress, requests)
        try:
            trainer.start(resume)
            return trainer.go()
        except KeyboardInterrupt:
            raise trainer.stopped("stopped at once by a second Ctrl-C", 130) from None
        except torch.OutOfMemoryError:
            raise trainer.stopped(
                "out of memory: use smaller batches, and accumulate more of them to a step"
            ) from None
        finally:
            trainer.close()
