from __future__ import annotations

import io
import json
import math
import os
import random
import re
import signal
import types

import pytest
import torch
from toys import Digits, numbers, quick

from headwise.training import (
    MissingExtra,
    RunError,
    TrainingStopped,
    latest_checkpoint,
    load_run,
    read_config,
    read_metrics,
    train,
)
from headwise.training import precision as precision_room
from headwise.training.checkpoint import checkpoint_folders


def names(run):
    return [folder.name for folder in checkpoint_folders(run)]


def trained(run, task=None, **changes):
    return train(task or Digits(), quick(**changes), run, show=False)


def test_a_run_learns_and_leaves_its_folder(tmp_path):
    report = trained(tmp_path, steps=200, rate=0.03, validate_every=50, checkpoint_every=None, log_every=20)
    assert report.reason == "200 steps done"
    assert report.metrics["accuracy"] > 0.9
    assert report.parameters == 7 * 13 + 13 + 13 * 7 + 7
    config = read_config(tmp_path)
    assert (config["application"], config["classes"], config["recipe"]["rate"]) == ("digits", 7, 0.03)
    lines = read_metrics(tmp_path)
    losses = [line["loss"] for line in lines if line["split"] == "train"]
    assert losses[-1] < losses[0]
    assert [line["step"] for line in lines if line["split"] == "valid"] == [50, 100, 150, 200]
    assert names(tmp_path)[-1] == "step-200"
    task = Digits(seed=5)
    load_run(tmp_path, "last").load_into(task.model)
    task.model.eval()
    assert task.validate() == report.metrics


def test_the_rate_is_the_schedules(tmp_path):
    trained(tmp_path, steps=5, rate=0.3, warmup=3)
    rates = [line["rate"] for line in read_metrics(tmp_path) if line["split"] == "train"]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3])


def test_adam_is_the_papers(tmp_path):
    """The first step of Adam moves each weight by the rate, against the sign of its gradient."""
    task = Digits(dropout=0.0)
    before = [one.detach().clone() for one in task.model.parameters()]
    trained(tmp_path, task, steps=1, warmup=0, rate=0.01)
    for old, new in zip(before, task.model.parameters(), strict=True):
        moved = (new.detach() - old).abs()
        assert ((moved - 0.01).abs().lt(1e-4) | moved.lt(1e-6)).all()


def test_weight_decay_spares_biases(tmp_path):
    task = Digits(dropout=0.0)
    with torch.no_grad():
        for one in task.model.parameters():
            one.fill_(1.0)
    trained(tmp_path, task, steps=1, warmup=0, rate=1e-3, weight_decay=100.0)
    assert task.model[0].weight.max() < 0.92
    assert task.model[0].bias.min() > 0.99


def test_seeds_decide_everything(tmp_path):
    trained(tmp_path / "a")
    trained(tmp_path / "b")
    trained(tmp_path / "c", seed=1)
    first, same, other = (numbers(read_metrics(tmp_path / name)) for name in "abc")
    assert first == same
    assert first != other


def test_validating_and_saving_leave_no_trace(tmp_path):
    trained(tmp_path / "often", validate_every=1, checkpoint_every=1)
    trained(tmp_path / "never", validate_every=100, checkpoint_every=None, validate_at_end=False)
    often, never = (
        [line for line in numbers(read_metrics(tmp_path / name)) if line["split"] == "train"]
        for name in ("often", "never")
    )
    assert often == never


def test_a_run_goes_on_where_it_ended(tmp_path):
    trained(tmp_path / "straight", steps=12)
    trained(tmp_path / "parts", steps=5)
    for steps in (6, 12):
        report = train(Digits(seed=3), quick(steps=steps), tmp_path / "parts", resume=True, show=False)
    assert report.step == 12
    straight, parts = (
        [line for line in numbers(read_metrics(tmp_path / name)) if line["split"] == "train"]
        for name in ("straight", "parts")
    )
    assert straight == parts


def test_resuming_a_run_that_is_done_changes_nothing(tmp_path):
    trained(tmp_path)
    before = numbers(read_metrics(tmp_path))
    report = train(Digits(), quick(), tmp_path, resume=True, show=False)
    assert report.step == 12
    assert numbers(read_metrics(tmp_path)) == before


def test_the_last_ones_and_the_best_are_kept(tmp_path):
    class Worse(Digits):
        def validate(self):
            self.validations += 1
            return {"accuracy": 1 / self.validations}

    report = trained(tmp_path, Worse(), steps=20, keep=2, checkpoint_every=None)
    assert report.best == {"name": "step-4", "step": 4, "metric": "accuracy", "value": 1.0}
    assert names(tmp_path) == ["step-4", "step-16", "step-20"]
    assert load_run(tmp_path).step == 4
    assert load_run(tmp_path, "last").step == 20


def test_patience_ends_it(tmp_path):
    class Stuck(Digits):
        better = "lower"

        def validate(self):
            self.validations += 1
            return {"accuracy": (3.0, 2.0, math.nan, 2.0, 2.5, 1.0)[self.validations - 1]}

    report = trained(tmp_path, Stuck(), steps=None, patience=3)
    assert (report.step, report.reason) == (20, "3 validations without a better one")
    assert report.best["step"] == 8


def test_epochs_end_it_and_validation_may_follow_each(tmp_path):
    report = trained(tmp_path, steps=None, epochs=3, validate_every=None, checkpoint_every=None)
    length = len(Digits().batches("train", 0, 0))
    assert (report.reason, report.epoch, report.step) == ("3 epochs done", 3, 3 * length)
    valid = [line["step"] for line in read_metrics(tmp_path) if line["split"] == "valid"]
    assert valid == [length, 2 * length, 3 * length]
    assert load_run(tmp_path).config["recipe"]["epochs"] == 3
    assert report.best["name"] in names(tmp_path)


def test_a_budget_ends_it_and_counts_all_sessions(tmp_path):
    report = train(Digits(), quick(steps=10**6), tmp_path, budget_minutes=1e-3, show=False)
    assert report.reason == "the budget is spent"
    assert report.seconds >= 0.06
    again = train(Digits(), quick(steps=10**6), tmp_path, resume=True, budget_minutes=1e-3, show=False)
    assert again.step == report.step + 1  # a step finds out


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    trained(tmp_path, steps=2)
    with pytest.raises(RunError, match="holds a run already: continue it with --resume"):
        trained(tmp_path, steps=2)


def test_a_run_is_continued_with_what_it_was_started_with(tmp_path):
    trained(tmp_path, steps=2)
    with pytest.raises(
        RunError, match=r"started with rate=0.01, and now it is 0.5: resume with --set rate=0.01"
    ):
        train(Digits(), quick(rate=0.5), tmp_path, resume=True, show=False)
    other = Digits()
    other.config = {"application": "digits", "classes": 8}
    with pytest.raises(RunError, match="started with classes 7, and now it is 8"):
        train(other, quick(), tmp_path, resume=True, show=False)


def test_nan_stops_it_in_one_line_and_the_last_checkpoint_stays(tmp_path):
    class Breaks(Digits):
        calls = 0

        def loss(self, batch):
            self.calls += 1
            total, count, more = super().loss(batch)
            return (total * math.nan if self.calls == 8 else total), count, more

    with pytest.raises(TrainingStopped, match=r"the loss is nan at step 8 .* step-6 in") as error:
        trained(tmp_path, Breaks())
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 1
    assert latest_checkpoint(tmp_path).step == 6
    assert [line["step"] for line in read_metrics(tmp_path) if line["split"] == "train"] == list(range(1, 8))


def test_gradients_that_are_not_finite_stop_it(tmp_path):
    class Breaks(Digits):
        def loss(self, batch):
            total, count, more = super().loss(batch)
            parameter = next(self.model.parameters())
            return total + (parameter - parameter.detach()).abs().sqrt().sum(), count, more  # slope 1/0

    with pytest.raises(TrainingStopped, match=r"the gradient's norm is (nan|inf) at step 1"):
        trained(tmp_path, Breaks())
    assert names(tmp_path) == ["step-0"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_finishes_the_step_and_writes_a_checkpoint(tmp_path, number, code):
    class Interrupted(Digits):
        calls = 0

        def loss(self, batch):
            self.calls += 1
            if self.calls == 5:
                os.kill(os.getpid(), number)
            return super().loss(batch)

    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(
        TrainingStopped, match=r"stopped by .* after step 5; .* step-5 in .* --resume"
    ) as error:
        trained(tmp_path / "run", Interrupted())
    assert error.value.exit_code == code
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers
    train(Digits(), quick(), tmp_path / "run", resume=True, show=False)
    trained(tmp_path / "straight")
    assert numbers(read_metrics(tmp_path / "run")) == numbers(read_metrics(tmp_path / "straight"))


def test_a_second_ctrl_c_ends_it_at_once(tmp_path):
    class Impatient(Digits):
        calls = 0

        def loss(self, batch):
            self.calls += 1
            if self.calls == 5:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
            return super().loss(batch)

    with pytest.raises(TrainingStopped, match=r"second Ctrl-C; the last good checkpoint is step-4") as error:
        trained(tmp_path, Impatient())
    assert error.value.exit_code == 130


def test_no_memory_is_said(tmp_path):
    class Greedy(Digits):
        def loss(self, batch):
            raise torch.OutOfMemoryError("tried to allocate much")

    with pytest.raises(TrainingStopped, match="out of memory: use smaller batches"):
        trained(tmp_path, Greedy())


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
