"""What a run asks of its surroundings, and what it tells them: precision, progress, tasks, random states."""

from __future__ import annotations

import io
import json
import math
import random
import re
import types

import pytest
import torch
from loop_steps import trained
from toys import Digits, numbers, quick

from headwise.training import (
    MissingExtra,
    load_run,
    read_metrics,
    train,
)
from headwise.training import precision as precision_room


def test_auto_precision_leaves_no_trace(tmp_path, monkeypatch):
    trained(tmp_path / "plain")
    said = io.StringIO()
    monkeypatch.setattr(precision_room, "GAIN", 0.0)  # bfloat16 never wins
    train(Digits(), quick(precision="auto"), tmp_path / "auto", file=said)
    assert "precision auto: float32 (forward and backward of 2 batches took" in said.getvalue()
    assert numbers(read_metrics(tmp_path / "auto")) == numbers(read_metrics(tmp_path / "plain"))


def test_bfloat16_is_kept_when_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(precision_room, "GAIN", math.inf)  # bfloat16 always wins
    trained(tmp_path / "auto", precision="auto", steps=6)
    monkeypatch.setattr(precision_room, "GAIN", 0.0)
    train(Digits(), quick(precision="auto"), tmp_path / "auto", resume=True, show=False)
    trained(tmp_path / "bfloat16", precision="bfloat16")
    auto, bfloat16 = (
        [line for line in numbers(read_metrics(tmp_path / name)) if line["split"] == "train"]
        for name in ("auto", "bfloat16")
    )
    assert auto == bfloat16
    trained(tmp_path / "float32")
    assert numbers(read_metrics(tmp_path / "float32"))[0]["loss"] != bfloat16[0]["loss"]


@pytest.mark.parametrize("counted", [None, "images"])
def test_plain_lines_where_there_is_no_terminal(tmp_path, counted):
    said, task = io.StringIO(), Digits()
    if counted:
        task.counted = counted
    train(task, quick(), tmp_path, file=said)
    lines = said.getvalue().splitlines()
    assert lines[0].startswith("step 1  loss 2.")
    assert f"  {counted or 'tokens'}/s " in lines[0]
    assert "left" in lines[0]
    assert lines[4].startswith("step 4  validation  accuracy 0.")
    assert re.match(r"12 steps done: step 12, \d+:\d\d, best accuracy 0\.\d+ at step \d+; ", lines[-1])
    assert "\x1b" not in said.getvalue()


def test_a_bar_in_a_terminal(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    said = Terminal()
    train(Digits(), quick(), tmp_path, file=said)
    assert "\x1b[" in said.getvalue()
    assert "validation  accuracy" in said.getvalue()


def test_tensorboard_is_an_option(tmp_path, monkeypatch):
    def missing(name, *_):
        raise MissingExtra(f"tensorboard=true needs {name}, which is missing: pip install tensorboard")

    monkeypatch.setattr("headwise.training.metrics.need", missing)
    with pytest.raises(MissingExtra, match="pip install tensorboard"):
        trained(tmp_path, tensorboard=True)


def test_tensorboard_gets_the_lines_of_metrics(tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            written.append((name, step))

        def close(self):
            written.append("closed")

    monkeypatch.setattr(
        "headwise.training.metrics.need", lambda name, *_: types.SimpleNamespace(SummaryWriter=Writer)
    )
    trained(tmp_path, tensorboard=True, steps=4)
    train(Digits(), quick(tensorboard=True, steps=5), tmp_path, resume=True, show=False)
    folder = str(tmp_path / "tensorboard")
    assert [one for one in written if one[0] == folder] == [(folder, 1), (folder, 5)]
    assert [one[1] for one in written if one[0] == "train/loss"] == [1, 2, 3, 4, 5]
    assert ("valid/accuracy", 4) in written
    assert written.count("closed") == 2


def test_what_the_task_says_is_checked(tmp_path):
    class Empty(Digits):
        def batches(self, split, epoch, seed):
            return []

    class Mute(Digits):
        def validate(self):
            return {"loss": 1.0}

    class Countless(Digits):
        def loss(self, batch):
            return super().loss(batch)[0], 0, {}

    with pytest.raises(ValueError, match="epoch 0 has no batches"):
        trained(tmp_path / "a", Empty())
    with pytest.raises(ValueError, match="without the task's metric 'accuracy'"):
        trained(tmp_path / "b", Mute())
    with pytest.raises(ValueError, match="count 0 tokens"):
        trained(tmp_path / "c", Countless())
    with pytest.raises(ValueError, match="needs the width of the model"):
        trained(tmp_path / "d", schedule="paper")


def test_batches_may_be_any_iterable(tmp_path):
    class Generated(Digits):
        def batches(self, split, epoch, seed):
            return iter(list(super().batches(split, epoch, seed)))

    trained(tmp_path / "a", Generated(), steps=7)
    train(Generated(), quick(), tmp_path / "a", resume=True, show=False)
    trained(tmp_path / "b")
    first, second = (
        [line for line in numbers(read_metrics(tmp_path / name)) if line["split"] == "train"] for name in "ab"
    )
    assert first == second


def test_random_states_of_all_generators_are_kept(tmp_path):
    import numpy

    class Noisy(Digits):
        def loss(self, batch):
            noise = random.random() + numpy.random.rand() + torch.rand(()).item()
            total, count, more = super().loss(batch)
            return total, count, {**more, "noise": noise * count}

    trained(tmp_path / "a", Noisy(), steps=5)
    random.seed(99)
    numpy.random.seed(99)
    train(Noisy(), quick(), tmp_path / "a", resume=True, show=False)
    trained(tmp_path / "b", Noisy())
    noises = [
        [line["noise"] for line in read_metrics(tmp_path / name) if line["split"] == "train"] for name in "ab"
    ]
    assert noises[0] == noises[1]
    assert len(set(noises[0])) == 12


def test_metrics_are_json_even_where_numbers_are_not(tmp_path):
    class Odd(Digits):
        def validate(self):
            return {"accuracy": math.nan, "other": math.inf}

    trained(tmp_path, Odd())
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["accuracy"] for line in lines if line["split"] == "valid"] == [None] * 3
    assert load_run(tmp_path).step == 12  # no best: the last
