"""A run that is killed at any moment and resumed gives the same numbers, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from toys import numbers

from headwise.training import latest_checkpoint, read_metrics


def test_killed_runs_continue_to_the_same_bits(tmp_path):
    script = Path(__file__).with_name("killed_run.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    straight = latest_checkpoint(tmp_path / "straight")
    lines = numbers(read_metrics(tmp_path / "straight"))
    assert [line["step"] for line in lines if line["split"] == "train"] == [3, 6, 9, 12, 15, 16]
    for report in done.stdout.splitlines():
        name, kills, last, *left = report.split()
        assert int(kills) >= 5
        assert (last, left) == ("step-16", [])
        killed = latest_checkpoint(tmp_path / name)
        assert killed.weights.keys() == straight.weights.keys()
        assert all(torch.equal(killed.weights[one], tensor) for one, tensor in straight.weights.items())
        assert all(torch.equal(killed.optimizer[one], tensor) for one, tensor in straight.optimizer.items())
        assert killed.state["random"] == straight.state["random"]
        assert killed.state["best"] == straight.state["best"]
        assert numbers(read_metrics(tmp_path / name)) == lines
