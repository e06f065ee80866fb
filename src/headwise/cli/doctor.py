"""`headwise doctor`: what this machine and this installation have to compute attention with."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import torch

from headwise._version import __version__
from headwise.cli.errors import UserError
from headwise.kernels.native_build import MISSING, VARIABLE, Build, build
from headwise.kernels.native_table import beside_torch
from headwise.multihead.projections import said

SCHEMA = 1


def doctor(*, as_json: bool) -> str:
    """What was built, what the CPU offers, which of it is used and why; threads, torch, devices."""
    found = facts(build())
    return json.dumps(found, indent=2) if as_json else words(found)


def complain() -> None:
    """Raise where calls would: the report alone might be read as all being well."""
    built = build()
    wrong = None if built is None else built.wrong()
    if wrong is not None:
        raise UserError(wrong)


def facts(built: Build | None) -> dict[str, Any]:
    """The same for programs: plain numbers, strings and lists."""
    kernel: dict[str, Any] = {"built": built is not None}
    if built is None:
        kernel["missing"] = MISSING
    else:
        kernel |= {
            "compiler": built.compiler,
            "instruction_sets": [{"name": name, "on_this_cpu": here} for name, here in built.sets],
            "used": built.used,
            "why": built.why(),
            "asked_for": built.forced,
            "wrong": built.wrong(),
            "auto": beside_torch(built.used),
        }
    return {
        "schema": SCHEMA,
        "headwise": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpu": {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "usable": _usable(),
            "torch_level": torch.backends.cpu.get_cpu_capability(),
            "features": None if built is None else built.features.split(),
        },
        "threads": {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")},
        "devices": _devices(),
        "projections": said(),
        "native": kernel,
    }


def words(found: dict[str, Any]) -> str:
    """The facts, a line each."""
    cpu, threads, kernel = found["cpu"], found["threads"], found["native"]
    said = threads["OMP_NUM_THREADS"]
    lines = [
        f"headwise  {found['headwise']}, with torch {found['torch']} on Python {found['python']}",
        f"cpu       {cpu['machine']}, {cpu['usable']} of {cpu['cores']} cores usable; torch's own kernels "
        f"use {cpu['torch_level']}",
        f"threads   {threads['torch']} (torch.get_num_threads()"
        + ("; OMP_NUM_THREADS is not set)" if said is None else f"; OMP_NUM_THREADS={said})"),
        f"devices   {', '.join(found['devices'])}",
    ]
    lines.append(f"linears   of layers and models: {found['projections']}")
    if not kernel["built"]:
        lines += [
            f"native    no: {kernel['missing']}",
            "          Without it, other kernels compute the same.",
        ]
        return "\n".join(lines)
    sets = ", ".join(
        one["name"] + ("" if one["on_this_cpu"] else " (not on this CPU)")
        for one in kernel["instruction_sets"]
    )
    return "\n".join(
        [
            *lines,
            f"native    built by {kernel['compiler']} for {sets}",
            *(
                (
                    f"          uses {kernel['used']}: {kernel['why']}",
                    f"          kernel='auto' {kernel['auto']}",
                )
                if kernel["wrong"] is None
                else (f"          refuses to run: {kernel['wrong']}",)
            ),
            f"          the CPU offers {' '.join(cpu['features']) or 'nothing that the kernel looks for'}",
            f"          {VARIABLE}=NAME before Python starts asks for another set",
        ]
    )


def _usable() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _devices() -> list[str]:
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{n} ({torch.cuda.get_device_name(n)})" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found
