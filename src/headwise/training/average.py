"""The average of a run's last checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from headwise.training.checkpoint import CheckpointError, checkpoint_folders, load_checkpoint


def average_checkpoints(
    run: Path, last: int = 5, *, warn: Callable[[str], None] = lambda line: None
) -> tuple[dict[str, Tensor], list[int]]:
    """The mean of the weights of the last checkpoints, and their steps, the oldest first.

    The paper averages the last 5 (base) or 20 (big), written every 10 minutes (6.1). Sums are taken in
    float64. Tensors of whole numbers (counters) can't be averaged: they are the last checkpoint's. The
    checkpoint of step 0, before any training, is left out where there are others.

    Args:
        last: how many; fewer where the run has fewer
        warn: is told of damaged checkpoints, which are passed over

    Raises:
        ValueError: last below 1.
        CheckpointError: no checkpoint can be used, or they are of different models.
    """
    if last < 1:
        raise ValueError(f"last is {last}: it must be at least 1")
    folders = checkpoint_folders(run)
    trained = [folder for folder in folders if folder.name != "step-0"] or folders
    sums: dict[str, Tensor] = {}
    newest: dict[str, Tensor] = {}
    steps: list[int] = []
    for folder in reversed(trained):
        if len(steps) == last:
            break
        try:
            found = load_checkpoint(folder, with_optimizer=False)
        except CheckpointError as error:
            warn(f"{error}; averaging without it")
            continue
        if not steps:
            newest = dict(found.weights)
            sums = {name: tensor.double() for name, tensor in newest.items() if tensor.is_floating_point()}
        else:
            _check(newest, found.weights, folder)
            for name, total in sums.items():
                total += found.weights[name]
        steps.append(found.step)
    if not steps:
        raise CheckpointError(f"run {run} has no checkpoint that can be averaged")
    averaged = {
        name: (sums[name] / len(steps)).to(tensor.dtype) if name in sums else tensor
        for name, tensor in newest.items()
    }
    return averaged, steps[::-1]


def _check(first: dict[str, Tensor], other: object, folder: Path) -> None:
    shapes = {name: tensor.shape for name, tensor in first.items()}
    if not isinstance(other, dict) or {name: tensor.shape for name, tensor in other.items()} != shapes:
        raise CheckpointError(
            f"checkpoint {folder} is of another model than the newest: they can't be averaged"
        )
