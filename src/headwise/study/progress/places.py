"""Where a learner's progress is kept: one file for each profile, in the place for a user's data."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from headwise.study.progress.errors import Refused

VARIABLE = "HEADWISE_STUDY_DATA"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_NAMES_OF_WINDOWS = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}


def data_folder() -> Path:
    """HEADWISE_STUDY_DATA if it is set; otherwise the place that the system has for data of its users."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return Path(named).expanduser()
    return _users("XDG_DATA_HOME", Path(".local", "share"), Path("Library", "Application Support")) / "study"


def cache_folder() -> Path:
    """Where pages are built: it may be deleted at any time."""
    return _users("XDG_CACHE_HOME", Path(".cache"), Path("Library", "Caches")) / "study"


def _users(variable: str, usual: Path, apple: Path) -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "headwise"
    if sys.platform == "darwin":
        return Path.home() / apple / "headwise"
    named = os.environ.get(variable, "")
    return (Path(named) if named.startswith("/") else Path.home() / usual) / "headwise"


def progress_file(profile: str = "default") -> Path:
    """The file of a profile.

    Raises:
        Refused: the name of the profile is none.
    """
    return data_folder() / f"{check_profile(profile)}.sqlite3"


def check_profile(name: str) -> str:
    """The name of a profile, which is the name of a file on every system.

    Raises:
        Refused: it is none.
    """
    if not _NAME.fullmatch(name) or name in _NAMES_OF_WINDOWS:
        raise Refused(
            f"profile {name!r}: a name has 1 to 40 of a-z, 0-9, - and _, begins and ends with a letter or "
            "digit, and is none that Windows keeps for devices"
        )
    return name
