"""Runs that are killed with SIGKILL, each in a process of its own: `python killed_run.py FOLDER`.

First a run without a stop. Then the same again: killed before its first operation on the disk, resumed and
killed before the second, and so on to the end; another in the middle of its files; another in the middle
of steps. Prints how often each was killed. Torch is imported once, and processes are forked from that.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from pathlib import Path

import accelerate  # noqa: F401  (imported once, before the forks)
import safetensors.torch  # noqa: F401
import torch._dynamo  # noqa: F401  (the optimizer's first use imports it)
from toys import Digits, quick

from headwise.training import files, latest_checkpoint, train
from headwise.training.checkpoint import checkpoint_folders

RECIPE = quick(steps=16, keep=2, clip=1.0, accumulate=2, log_every=3, validate_every=6, checkpoint_every=2)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class DiesAt:
    """Wraps operations on the disk: the process is killed before the n-th of them."""

    def __init__(self, number):
        self.left = number
        for holder, name in (
            (os, "fsync"),
            (Path, "rename"),
            (Path, "replace"),
            (Path, "mkdir"),
            (shutil, "rmtree"),
        ):
            setattr(holder, name, self.counted(getattr(holder, name)))

    def counted(self, operation):
        def wrapped(*args, **kwargs):
            self.left -= 1
            if self.left == 0:
                die()
            return operation(*args, **kwargs)

        return wrapped


def dies_in_file(number):
    """The n-th file of a checkpoint is written by half."""
    left = [number]
    whole = files.write_durably

    def half(path, content):
        left[0] -= 1
        if left[0] == 0:
            path.write_bytes(content[: len(content) // 2])
            die()
        whole(path, content)

    files.write_durably = half


def dies_in_step(number):
    """The n-th loss that is computed is the last."""
    left = [number]
    loss = Digits.loss

    def deadly(self, batch):
        left[0] -= 1
        if left[0] == 0:
            die()
        return loss(self, batch)

    Digits.loss = deadly


def child(run, prepare):
    """Train in a forked process; True where it was killed."""
    number = os.fork()
    if number == 0:
        try:
            prepare()
            train(Digits(), RECIPE, run, resume=True, show=False)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(number, 0)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise SystemExit(f"ended by signal {os.WTERMSIG(status)}")
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit("a run failed")
    return False


def kill_until_done(run, plans):
    """Kill the run by one plan after the other until it outlives one, or let it end; how many kills."""
    reached = 0
    for kills, plan in enumerate(plans):
        if not child(run, plan):
            return kills
        found = latest_checkpoint(run, warn=lambda line: sys.exit(f"not whole: {line}"))
        step = found.step if found else 0
        if step < reached:
            raise SystemExit(f"step {reached} was written, and now the last checkpoint is {step}")
        reached = step
    child(run, lambda: None)
    return len(plans)


def main():
    folder = Path(sys.argv[1])
    child(folder / "straight", lambda: None)
    chance = random.Random(5)
    plans = {
        "operations": [(lambda n=n: DiesAt(n)) for n in range(1, 60)],
        "files": [(lambda n=n: dies_in_file(n)) for n in range(1, 16)],
        "steps": [(lambda n=n: dies_in_step(n)) for n in chance.sample(range(1, 12), 8)],
    }
    for name, of_one in plans.items():
        run = folder / name
        kills = kill_until_done(run, of_one)
        left = [one.name for one in (run / "checkpoints").iterdir() if one.name.startswith(".")]
        print(name, kills, checkpoint_folders(run)[-1].name, *left)


if __name__ == "__main__":
    main()
