"""The memory that one call needs on top of its inputs, seen by a fresh process.

Each way runs in a process of its own: it loads everything by running the program's smallest cases, makes the
inputs, and then notes how far the peak of its resident memory rises while it prepares and runs. What a
way returns counts; what it was given doesn't.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent


def extra_mib(module: str, label: tuple[str, ...], way: str, *, size: str, threads: int) -> float:
    """MiB by which the peak rises when a fresh process runs one way of a case of `module`."""
    job = {"module": module, "label": label, "way": way, "size": size, "threads": threads}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", json.dumps(job)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {label} {way} failed in its own process:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def _alone(job: dict[str, Any]) -> float:
    torch.set_num_threads(job["threads"])
    program = importlib.import_module(job["module"]).PROGRAM
    for case in program.cases("quick"):
        for way in case.named([job["way"]]):
            way.run(way.ready())
    label = tuple(job["label"])
    case = next(case for case in program.cases(job["size"]) if case.label == label)
    (way,) = case.named([job["way"]])
    gc.collect()
    _trim()
    before = _restart_peak()
    result = way.run(way.ready())
    rise = _status("VmHWM") - before
    del result
    return rise / 2**20


def _trim() -> None:
    """Give memory that is free in the heap back, so that the call can't use it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _restart_peak() -> int:
    """Let the peak start anew where the system can; bytes that the rise is counted from."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _status("VmHWM")  # what lies under the old peak goes unseen
    return _status("VmRSS")


def _status(name: str) -> int:
    """Bytes."""
    if not os.path.exists("/proc/self/status"):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


if __name__ == "__main__":
    print(_alone(json.loads(sys.argv[1])))
