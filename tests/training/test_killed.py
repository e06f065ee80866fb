"""A run that is killed at any moment and resumed gives the same numbers, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from toys import numbers

from headwise.training import latest_checkpoint, read_metrics


def test_a_run_killed_at_every_operation_continues_to_the_same_bits(tmp_path):
    script = Path(__file__).with_name("killed_run.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    kills, last, *left = done.stdout.split()
    assert int(kills) > 20
    assert (last, left) == ("step-22", [])
    straight, killed = (latest_checkpoint(tmp_path / name) for name in ("straight", "killed"))
    assert killed.weights.keys() == straight.weights.keys()
    assert all(torch.equal(killed.weights[name], tensor) for name, tensor in straight.weights.items())
    assert all(torch.equal(killed.optimizer[name], tensor) for name, tensor in straight.optimizer.items())
    assert killed.state["random"] == straight.state["random"]
    lines = numbers(read_metrics(tmp_path / "straight"))
    assert [line["step"] for line in lines if line["split"] == "train"] == [3, 6, 9, 12, 15, 18, 21, 22]
    assert numbers(read_metrics(tmp_path / "killed")) == lines
