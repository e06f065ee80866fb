"""The compiled module, if there is one, and what can be said of it."""

from __future__ import annotations

import importlib
import os
import shutil
from dataclasses import dataclass
from typing import Any

MISSING: str | None = None  # why there is no compiled module
native: Any = None


def unbuilt() -> str:
    """What to say where there is none. An installation goes on without it where the compiler fails, and pip
    shows what the compiler said only when asked to."""
    # Without pip's cache, which holds the wheel that was made without the compiler's work.
    again = (
        "install headwise again with pip install -v --force-reinstall --no-deps --no-cache-dir . (in the "
        "folder of its sources), which shows the compiler's errors"
    )
    found = next((one for one in ("g++", "clang++", "c++") if shutil.which(one)), None)
    if found is None:
        return (
            "there is no compiled kernel, and no C++ compiler (GCC or Clang) to build it with: install one, "
            f"then {again}"
        )
    return (
        f"there is no compiled kernel, though a C++ compiler is here ({found}): it failed when headwise was "
        f"installed, or came later; {again}"
    )


try:
    native = importlib.import_module("headwise._native")
except ImportError as error:
    if isinstance(error, ModuleNotFoundError):
        MISSING = unbuilt()
    else:
        MISSING = f"the compiled kernel can't be loaded: {error}"

VARIABLE = "HEADWISE_ISA"


class NoSuchSet(ValueError):
    """The variable HEADWISE_ISA asks for an instruction set that can't be had."""


ARGUMENTS = 2  # the order in which kernels/native_call.py writes them: csrc/reader.hpp's number
if native is not None and getattr(native, "ARGUMENTS", 1) != ARGUMENTS:
    native, MISSING = (
        None,
        "the compiled kernel was built from other sources than these: install headwise again",
    )


@dataclass(frozen=True)
class Build:
    """What was built and what this CPU offers.

    Attributes:
        compiler: what built it.
        sets: each instruction set that was built, weakest first, and whether this CPU has it.
        used: the one in use.
        forced: what the variable HEADWISE_ISA asked for when headwise was imported, if it was set.
        features: what the CPU offers.
    """

    compiler: str
    sets: tuple[tuple[str, bool], ...]
    used: str
    forced: str | None
    features: str

    def why(self) -> str:
        """Why this set is the one in use."""
        if self.forced == self.used:
            return f"{VARIABLE}={self.forced} asks for it"
        return "the best one that was built and that this CPU has"

    def wrong(self) -> str | None:
        """What is wrong with the set that is asked for, and which there are; None if nothing is."""
        if self.forced is None or dict(self.sets).get(self.forced):
            return None
        built = ", ".join(name for name, _ in self.sets)
        here = ", ".join(name for name, on_this_cpu in self.sets if on_this_cpu)
        state = "this CPU doesn't have" if self.forced in dict(self.sets) else "this build doesn't have"
        return (
            f"{VARIABLE}={self.forced!r} asks for an instruction set that {state}: built are {built}, and of "
            f"these the CPU has {here}. Set it to one of these before headwise is imported, or unset it"
        )


# What is asked for now, and what that comes to: later changes of the environment change neither.
_asked = os.environ.get(VARIABLE) or None
if native is not None:
    native.isa()
_looked_at = False


def isa() -> str | None:
    """The instruction set in use; None where there is no compiled module.

    Raises:
        NoSuchSet: the variable HEADWISE_ISA asks for one that can't be had.
    """
    global _looked_at
    if native is None:
        return None
    if not _looked_at:
        wrong = _built().wrong()
        if wrong is not None:
            raise NoSuchSet(wrong)
        _looked_at = True
    used: str = native.isa()
    return used


def build() -> Build | None:
    """None where there is no compiled module; `MISSING` then says why."""
    return None if native is None else _built()


def _built() -> Build:
    return Build(
        compiler=native.compiler(),
        sets=tuple(native.builds()),
        used=native.isa(),
        forced=_asked,
        features=native.features(),
    )
