from __future__ import annotations

import errno
import json
import os
import resource

import pytest
import safetensors.torch
import torch
from torch import nn
from toys import Digits, numbers, quick

from headwise.training import (
    CheckpointError,
    RunError,
    TrainingStopped,
    average_checkpoints,
    latest_checkpoint,
    load_checkpoint,
    load_run,
    read_metrics,
    train,
)
from headwise.training import files as files_room
from headwise.training.checkpoint import checkpoint_folders, save_checkpoint
from headwise.training.tensors import load_weights, pack, unpack


@pytest.fixture
def run(tmp_path):
    train(Digits(), quick(), tmp_path / "run", show=False)
    return tmp_path / "run"


def change_state(folder, **changes):
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | changes))


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def flip(folder):
    content = bytearray((folder / "optimizer.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "optimizer.safetensors").write_bytes(content)


DAMAGES = {
    "is cut off": cut,
    "its SHA-256 differs": flip,
    "model.safetensors can't be read": lambda folder: (folder / "model.safetensors").unlink(),
    "state.json can't be read": lambda folder: (folder / "state.json").write_text('{"format": "headw'),
    "state.json is missing": lambda folder: (folder / "state.json").unlink(),
    "state.json isn't headwise's": lambda folder: (folder / "state.json").write_text('{"step": 3}'),
    "has format version 99": lambda folder: change_state(folder, version=99),
    "was changed after it was written": lambda folder: change_state(folder, step=11),
}


@pytest.mark.parametrize("words", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(run, words):
    DAMAGES[words](run / "checkpoints" / "step-12")
    with pytest.raises(CheckpointError, match=words) as error:
        load_checkpoint(run / "checkpoints" / "step-12")
    assert "\n" not in str(error.value)
    said = []
    assert latest_checkpoint(run, warn=said.append).step == 10
    (line,) = said
    assert words in line
    assert line.endswith("trying the one before")


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(run, tmp_path):
    flip(run / "checkpoints" / "step-12")
    train(Digits(), quick(), run, resume=True, show=False)
    train(Digits(), quick(), tmp_path / "straight", show=False)
    assert numbers(read_metrics(run)) == numbers(read_metrics(tmp_path / "straight"))
    assert latest_checkpoint(run).step == 12
    assert not list((run / "checkpoints").glob(".*"))


def test_when_all_are_damaged_it_says_so(run):
    for folder in checkpoint_folders(run):
        cut(folder)
    with pytest.raises(CheckpointError, match="none of the 5 checkpoints"):
        latest_checkpoint(run)
    with pytest.raises(CheckpointError, match="none of the 5"):
        train(Digits(), quick(), run, resume=True, show=False)
    with pytest.raises(CheckpointError, match="none of the 5"):
        load_run(run)


def test_what_is_written_is_read_and_shared_weights_are_written_once():
    model = nn.ModuleDict({"embedding": nn.Embedding(11, 3), "output": nn.Linear(3, 11, bias=False)})
    model["output"].weight = model["embedding"].weight
    state = {**model.state_dict(), "half": torch.randn(5).bfloat16().t(), "column": torch.randn(3, 2)[:, 0]}
    content = pack(state)
    assert len(safetensors.torch.load(content)) == 3
    found = unpack(content)
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in state.items())
    with pytest.raises(TypeError, match="extra is a dict"):
        pack({"extra": {}})
    with pytest.raises(ValueError, match="no safetensors file"):
        unpack(b"PK\x03\x04 this would be a pickle")


def test_weights_of_another_model_are_refused():
    weights = nn.Linear(3, 2).state_dict()
    with pytest.raises(ValueError, match=r"weight is \[2, 3\] there and \[2, 5\]"):
        load_weights(nn.Linear(5, 2), weights, "run X")
    with pytest.raises(ValueError, match=r"run X is of another model: it has bias, which the model lacks"):
        load_weights(nn.Linear(3, 2, bias=False), weights, "run X")
    with pytest.raises(ValueError, match=r"lacks bias \(1 in all\)"):
        load_weights(nn.Linear(3, 2), {"weight": weights["weight"]}, "run X")


def test_the_safetensors_library_reads_a_run_by_itself(run):
    model = Digits(seed=7).model
    safetensors.torch.load_model(model, run / "checkpoints" / "step-12" / "model.safetensors")
    for name, tensor in load_run(run, "last").weights.items():
        assert torch.equal(model.state_dict()[name], tensor)


def write_steps(run, values):
    for step, value in enumerate(values):
        weights = {"w": torch.full((2, 3), value), "n": torch.tensor(step)}
        save_checkpoint(run, 10 * step, weights=weights, optimizer={}, state={"best": None})


def test_the_average_is_that_of_the_last_ones(tmp_path):
    write_steps(tmp_path, [100.0, 1.0, 2.0, 6.0])
    weights, steps = average_checkpoints(tmp_path, 2)
    assert steps == [20, 30]
    assert torch.equal(weights["w"], torch.full((2, 3), 4.0))
    assert weights["n"] == 3  # a counter: the last one's
    weights, steps = average_checkpoints(tmp_path, 99)
    assert steps == [10, 20, 30]  # without that before any training
    assert torch.equal(weights["w"], torch.full((2, 3), 3.0))
    cut(tmp_path / "checkpoints" / "step-20")
    said = []
    assert average_checkpoints(tmp_path, 2, warn=said.append)[1] == [10, 30]
    assert "averaging without it" in said[0]
    with pytest.raises(ValueError, match="last is 0"):
        average_checkpoints(tmp_path, 0)
    with pytest.raises(CheckpointError, match="no checkpoint that can be averaged"):
        average_checkpoints(tmp_path / "nothing", 2)


def test_averages_of_different_models_are_refused(tmp_path):
    write_steps(tmp_path, [1.0, 2.0])
    save_checkpoint(tmp_path, 30, weights={"w": torch.zeros(5)}, optimizer={}, state={})
    with pytest.raises(CheckpointError, match="of another model than the newest"):
        average_checkpoints(tmp_path, 2)


def test_a_run_is_read_by_its_best_last_and_average(run):
    assert load_run(run, "average", average=2).step == 12
    last = load_run(run, "last")
    assert last.metrics.keys() == {"accuracy"}
    with pytest.raises(ValueError, match="choose best, last or average"):
        load_run(run, "first")
    with pytest.raises(ValueError, match="of another model"):
        last.load_into(nn.Linear(2, 2))


def test_folders_that_are_no_runs_are_named(run, tmp_path):
    with pytest.raises(RunError, match="there is no run"):
        load_run(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"is no run: it has no config\.json"):
        load_run(tmp_path)
    for content, words in (
        ("{", "damaged"),
        ('{"model_type": "bert"}', "isn't of a headwise run"),
        ('{"format": "headwise-run", "version": 7}', "format version 7"),
    ):
        (run / "config.json").write_text(content)
        with pytest.raises(RunError, match=words):
            load_run(run)


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    whole = files_room.write_durably

    def full(path, content):
        if "step-6" in str(path):
            path.write_bytes(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(path, content)

    monkeypatch.setattr(files_room, "write_durably", full)
    with pytest.raises(TrainingStopped, match=r"No space left on device \(make room first\)") as error:
        train(Digits(), quick(), tmp_path / "run", show=False)
    assert "step-4" in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 1
    assert latest_checkpoint(tmp_path / "run").step == 4
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))
    monkeypatch.undo()
    train(Digits(), quick(), tmp_path / "run", resume=True, show=False)
    train(Digits(), quick(), tmp_path / "straight", show=False)
    assert numbers(read_metrics(tmp_path / "run")) == numbers(read_metrics(tmp_path / "straight"))


def test_the_system_refusing_to_write_is_said(tmp_path):
    """A real refusal: the process may not write files of more than 2,000 bytes."""
    task, (before, most) = Digits(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, most))
    try:
        with pytest.raises(TrainingStopped) as error:
            train(task, quick(), tmp_path, show=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    said = (
        f"can't write to {tmp_path} at step 0: File too large (make room first); there is no checkpoint yet"
    )
    assert said in str(error.value)


def test_a_place_that_cannot_be_written_to_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        train(Digits(), quick(), tmp_path / "file", show=False)
    with pytest.raises(TrainingStopped, match=r"can't write to .*Not a directory"):
        train(Digits(), quick(), tmp_path / "file" / "run", show=False)
