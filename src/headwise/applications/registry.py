"""Applications by name. Their modules are imported when they are asked for."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path
from typing import cast

from headwise.applications.base import Application
from headwise.applications.errors import DataError
from headwise.training.runs import RunError, read_config

MODULES = {
    "speech": "headwise.applications.speech",
    "question-answering": "headwise.applications.question_answering",
    "summarization": "headwise.applications.summarization",
    "translation": "headwise.applications.translation",
    "vision": "headwise.applications.vision",
}


def find(name: str) -> Application:
    """An application by name.

    Raises:
        DataError: there is none of this name; the nearest one is named.
    """
    if name not in MODULES:
        close = difflib.get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(MODULES)}"
        raise DataError(f"there is no application {name!r}: {hint}")
    return cast(Application, importlib.import_module(MODULES[name]).APPLICATION)


def application_of(run: Path) -> Application:
    """The application that a run was trained for.

    Raises:
        RunError: the folder holds no run, or that of an application that this headwise doesn't have.
    """
    name = read_config(run).get("application")
    if not isinstance(name, str) or name not in MODULES:
        raise RunError(f"run {run} is of application {name!r}; this headwise has {', '.join(MODULES)}")
    return find(name)
