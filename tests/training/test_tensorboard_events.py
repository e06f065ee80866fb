"""TensorBoard's own reader finds the figures of metrics.jsonl in what a run writes for it."""

from __future__ import annotations

import pytest
from toys import Digits, quick

from headwise.training import read_metrics, train
from headwise.training.metrics import Metrics

reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def events(run):
    """(split, figure, step) -> value."""
    board = reader.EventAccumulator(str(run / "tensorboard"), size_guidance={reader.SCALARS: 0})
    board.Reload()
    return {
        (*tag.split("/"), event.step): event.value
        for tag in board.Tags()["scalars"]
        for event in board.Scalars(tag)
    }


def lines(run):
    return {
        (line["split"], name, line["step"]): value
        for line in read_metrics(run)
        for name, value in line.items()
        if name != "step" and isinstance(value, int | float)
    }


def test_a_run_that_went_on_after_a_crash_is_read_as_one(tmp_path):
    """Steps that were computed after the last checkpoint, and then again, count once."""
    train(Digits(), quick(tensorboard=True, steps=4), tmp_path, show=False)
    assert ("valid", "accuracy", 4) in events(tmp_path)
    lost = Metrics(tmp_path, lines=len(read_metrics(tmp_path)), step=4, tensorboard=True)
    for step in (5, 6, 7):
        lost.write(step, "train", {"loss": -1.0})
    lost.close()
    assert events(tmp_path)["train", "loss", 7] == -1.0
    train(Digits(), quick(tensorboard=True, steps=6), tmp_path, resume=True, show=False)
    assert events(tmp_path) == pytest.approx(lines(tmp_path), rel=1e-6)
    assert {step for split, _, step in events(tmp_path) if split == "train"} == {1, 2, 3, 4, 5, 6}


def test_without_the_option_nothing_is_written_for_it(tmp_path):
    train(Digits(), quick(steps=2), tmp_path, show=False)
    assert not (tmp_path / "tensorboard").exists()
