"""What stops a run says so in a line, and keeps the last checkpoint."""

from __future__ import annotations

import math
import os
import signal

import pytest
import torch
from loop_steps import names, trained
from toys import Digits, numbers, quick

from headwise.training import (
    TrainingStopped,
    latest_checkpoint,
    read_metrics,
    train,
)


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
