"""A run learns, ends, and goes on where it ended."""

from __future__ import annotations

import math

import pytest
import torch
from loop_steps import names, trained
from toys import Digits, numbers, quick

from headwise.training import (
    RunError,
    load_run,
    read_config,
    read_metrics,
    train,
)


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
