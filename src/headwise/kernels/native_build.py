"""The compiled module, if there is one, and what can be said of it."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any

MISSING: str | None = None  # why there is no compiled module
native: Any = None

try:
    native = importlib.import_module("headwise._native")
except ImportError as error:
    if isinstance(error, ModuleNotFoundError):
        MISSING = "it wasn't built when headwise was installed, for want of a C++ compiler that can"
    else:
        MISSING = f"it can't be loaded: {error}"

VARIABLE = "HEADWISE_ISA"


@dataclass(frozen=True)
class Build:
    """What was built and what this CPU offers.

    Attributes:
        compiler: what built it.
        sets: each instruction set that was built, weakest first, and whether this CPU has it.
        used: the one in use.
        forced: what the variable HEADWISE_ISA asks for, if it is set.
        features: what the CPU offers.
    """

    compiler: str
    sets: tuple[tuple[str, bool], ...]
    used: str
    forced: str | None
    features: str

    def why(self) -> str:
        """Why this set is the one in use."""
        if self.forced is None:
            return "the best one that was built and that this CPU has"
        if self.forced == self.used:
            return f"{VARIABLE}={self.forced} asks for it"
        state = "isn't one that this CPU has" if self.forced in dict(self.sets) else "wasn't built"
        return f"{VARIABLE}={self.forced} {state}, so it is the best one that was built and that this CPU has"


def build() -> Build | None:
    """None where there is no compiled module; `MISSING` then says why."""
    if native is None:
        return None
    return Build(
        compiler=native.compiler(),
        sets=tuple(native.builds()),
        used=native.isa(),
        forced=os.environ.get(VARIABLE) or None,
        features=native.features(),
    )
