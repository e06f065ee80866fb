"""Runs of the toys, for tests of the loop."""

from __future__ import annotations

from toys import Digits, quick

from headwise.training import (
    train,
)
from headwise.training.checkpoint import checkpoint_folders


def names(run):
    return [folder.name for folder in checkpoint_folders(run)]


def trained(run, task=None, **changes):
    return train(task or Digits(), quick(**changes), run, show=False)
