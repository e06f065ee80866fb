"""What a run is trained on, kept in its config.json: times mean nothing without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def machine() -> dict[str, str | int]:
    """Processor, cores, threads of this process, and versions."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def processor(facts: Path = Path("/proc/cpuinfo")) -> str:
    """Its name, as Linux tells it; elsewhere, what Python knows."""
    try:
        lines = facts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()
