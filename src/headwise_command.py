"""The `headwise` command starts here, beside the package: `import headwise` brings torch along, which takes
seconds, and who asks for help or for the version need not wait for it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def run() -> None:
    """Entry point of the `headwise` script."""
    if "headwise" not in sys.modules:
        sys.modules["headwise"] = _unopened("headwise")
    from headwise.cli.main import run as command

    command()


SHADOWED = ("attention", "trace")
"""Functions of the package that have the names of the modules they are written in."""


class _Unopened(ModuleType):
    """Importing headwise.attention would name the module in the package, and nobody would ask any more for
    the function of this name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in SHADOWED:
            super().__setattr__(name, value)


def _unopened(name: str) -> ModuleType:
    """A package whose modules can be imported, and whose own names are there as soon as one is asked for."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no package {name}", name=name)
    package, loader = importlib.util.module_from_spec(spec), spec.loader
    package.__class__ = _Unopened

    def look_up(asked: str) -> object:
        if asked not in ("__all__", "__version__") and asked.startswith("__"):
            raise AttributeError(asked)
        del package.__dict__["__getattr__"]  # once
        package.__class__ = ModuleType
        loader.exec_module(package)
        return getattr(package, asked)

    package.__dict__["__getattr__"] = look_up
    return package
