"""Packages that only training needs, imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtra(ImportError):
    """A package isn't installed. One line that names it and the command that brings it."""


def need(module: str, for_what: str, install: str = "'headwise[train]'") -> ModuleType:
    """Import a module.

    Raises:
        MissingExtra: it isn't installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(f"{for_what} needs {package}, which is missing: pip install {install}") from None
