"""bfloat16 autocast, and whether it is faster on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from headwise.training.random_state import random_state, set_random_state
from headwise.training.recipe import Precision
from headwise.training.task import Task

TIMINGS = 3
GAIN = 0.95  # bfloat16 has to save at least 5%: less isn't worth its 8 bits


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """The context in which losses are computed: matrix products in bfloat16, or nothing at all.

    Weights and the optimizer stay in float32; softmax, LayerNorm and the loss are computed in float32.
    """
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def choose_precision(
    wanted: Precision, task: Task, batches: Sequence[Any], device: torch.device, say: Callable[[str], None]
) -> str:
    """What "auto" means here: a few batches forward and back with and without autocast, the faster wins.

    Nothing of it stays: gradients, buffers and random states are as before. A resumed run doesn't ask
    again; it keeps what its checkpoint says.
    """
    if wanted != "auto":
        return wanted
    if not batches:
        return "float32"
    model = task.model
    before = random_state()
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    was_training = model.training
    model.train()
    seconds = {"float32": float("inf"), "bfloat16": float("inf")}
    try:
        for precision in seconds:
            _time(task, batches[0], device, precision)  # the first call sets things up
        for _ in range(TIMINGS):  # by turns, so that a busy machine slows both
            for precision in seconds:
                found = sum(_time(task, batch, device, precision) for batch in batches)
                seconds[precision] = min(seconds[precision], found)
    finally:
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])
        model.train(was_training)
        set_random_state(before)
    chosen = "bfloat16" if seconds["bfloat16"] < GAIN * seconds["float32"] else "float32"
    many = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
    say(
        f"precision auto: {chosen} (forward and backward of {many} took "
        f"{seconds['float32']:.3g} s in float32, {seconds['bfloat16']:.3g} s in bfloat16)"
    )
    return chosen


def _time(task: Task, batch: Any, device: torch.device, precision: str) -> float:
    _wait(device)
    start = time.perf_counter()
    with autocast(device, precision):
        loss_sum = task.loss(batch)[0]
    loss_sum.backward()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
