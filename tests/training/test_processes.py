"""Several processes give the losses of one process with the whole batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toys import Digits, numbers, quick

from headwise.training import latest_checkpoint, read_metrics, token_loss, train
from headwise.training.sharing import part

SCRIPT = Path(__file__).with_name("processes_run.py")


def launched(*command):
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr


def assert_same(one, other):
    lines, others = (numbers(read_metrics(run)) for run in (one, other))
    assert [(line["step"], line["split"]) for line in lines] == [(o["step"], o["split"]) for o in others]
    for line, same in zip(lines, others, strict=True):
        for name, value in line.items():
            assert same[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
    weights, theirs = latest_checkpoint(one).weights, latest_checkpoint(other).weights
    for name, tensor in weights.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-8, atol=1e-10)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of one process, of two, and one that went on with another number of processes twice."""
    folder = tmp_path_factory.mktemp("runs")
    plans = [("one", 1, 12), ("two", 2, 12), ("mixed", 2, 5), ("mixed", 1, 9), ("mixed", 2, 12)]
    plans += [("sharded", 2, 7), ("sharded", 2, 12), ("mixed-sharded", 1, 4), ("mixed-sharded", 2, 12)]
    launched(SCRIPT, *(word for name, world, steps in plans for word in (folder / name, world, steps)))
    return folder


def test_two_processes_give_the_losses_of_one(runs):
    state = latest_checkpoint(runs / "two").state
    assert (state["world"], len(state["random"])) == (2, 2)
    assert_same(runs / "one", runs / "two")


def test_weights_cut_over_two_processes_give_the_losses_of_one(runs):
    lines, straight = (
        [line for line in numbers(read_metrics(runs / name)) if line["split"] == "train"]
        for name in ("sharded", "one")
    )
    assert [line["loss"] for line in lines] == pytest.approx([line["loss"] for line in straight], rel=1e-9)
    assert [line["norm"] for line in lines] == pytest.approx([line["norm"] for line in straight], rel=1e-9)
    sharded, one = latest_checkpoint(runs / "sharded"), latest_checkpoint(runs / "one")
    assert sharded.weights.keys() == one.weights.keys()
    assert sharded.optimizer.keys() == one.optimizer.keys()
    for name, tensor in one.weights.items():
        torch.testing.assert_close(sharded.weights[name], tensor, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["mixed", "mixed-sharded"])
def test_a_run_goes_on_with_another_number_of_processes(runs, name):
    assert latest_checkpoint(runs / name).step == 12
    lines = [line for line in read_metrics(runs / name) if line["split"] == "train"]
    straight = [line for line in read_metrics(runs / "one") if line["split"] == "train"]
    assert [line["loss"] for line in lines] == pytest.approx([line["loss"] for line in straight], rel=1e-9)


@pytest.mark.slow
def test_torchrun_itself(tmp_path):
    launched(SCRIPT, tmp_path / "one", 1, 12)
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", 29517)
    launched(*torchrun, SCRIPT, tmp_path / "two", 0, 12)
    assert latest_checkpoint(tmp_path / "two").state["world"] == 2
    assert_same(tmp_path / "one", tmp_path / "two")


def test_shares_of_a_batch_are_in_order_and_equal():
    batch = {"x": torch.arange(7), "words": list("abcdefg"), "pair": (torch.arange(14).view(7, 2), "label")}
    shares = [part(batch, rank, 3) for rank in range(3)]
    assert [share["x"].tolist() for share, _ in shares] == [[0, 1], [2, 3], [4, 5, 6]]
    assert [share["words"] for share, _ in shares] == [["a", "b"], ["c", "d"], ["e", "f", "g"]]
    assert shares[2][0]["pair"][0].tolist() == [[8, 9], [10, 11], [12, 13]]
    assert [empty for _, empty in shares] == [False] * 3
    assert part(batch, 0, 1) == (batch, False)


def test_a_process_without_examples_is_told():
    shares = [part((torch.arange(2), torch.arange(4).view(2, 2)), rank, 3) for rank in range(3)]
    assert [empty for _, empty in shares] == [True, False, False]
    assert [share[0].tolist() for share, _ in shares] == [[0], [0], [1]]


def test_batches_that_cannot_be_shared_are_refused():
    with pytest.raises(ValueError, match=r"first dimensions \[2, 3\]"):
        part({"x": torch.zeros(2, 5), "y": torch.zeros(3)}, 0, 2)


def test_accumulating_gives_the_gradient_of_the_whole_batch(tmp_path):
    """Batches of unequal size weigh by their tokens, not one like the other."""
    task = Digits(dropout=0.0, dtype=torch.float64)
    before = {name: one.detach().clone() for name, one in task.model.named_parameters()}
    found = token_loss(task.model(task.inputs), task.targets, smoothing=0.1)
    (found.loss_sum / found.tokens).backward()
    expected = torch.nn.utils.get_total_norm([one.grad for one in task.model.parameters()])
    task.model.zero_grad()
    recipe = quick(steps=1, accumulate=99, clip=None)
    train(task, recipe, tmp_path, show=False)
    (line,) = [line for line in read_metrics(tmp_path) if line["split"] == "train"]
    assert line["count"] == 61
    assert line["norm"] == pytest.approx(float(expected), rel=1e-12)
    assert line["loss"] == pytest.approx(found.loss_sum.item() / 61, rel=1e-12)
    assert any(not torch.equal(one, before[name]) for name, one in task.model.named_parameters())
