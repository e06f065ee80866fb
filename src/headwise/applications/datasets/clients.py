"""Package clients, run as programs, and the folder that keeps what they fetch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from headwise.applications.errors import DataError

CACHE_VARIABLE = "HEADWISE_CACHE"
TELLING = re.compile(r"fail|unable|not found|no matching|resolv", re.IGNORECASE)
PATIENCE = 1800
"""Seconds that a client may take."""


def cache_folder() -> Path:
    """Where downloads are kept: $HEADWISE_CACHE, else headwise in $XDG_CACHE_HOME, else ~/.cache/headwise."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "headwise"


def made_folder(path: Path) -> Path:
    """The folder, made if it isn't there.

    Raises:
        DataError: it can't be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path} can't be made: {error.strerror or error}") from None
    return path


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """An empty hidden folder beside a path, on the same disk. Afterwards it is gone, and so are folders that
    were made to hold it and hold nothing else."""
    parent = path.absolute().parent
    above = [one for one in (parent, *parent.parents) if not one.exists()]
    made_folder(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=parent))
    except OSError as error:
        raise DataError(f"{parent} can't be written to: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # the first that holds something ends it
            for one in above:
                one.rmdir()


class Printed(NamedTuple):
    """What a client printed."""

    out: str
    err: str


def run_client(
    command: Sequence[str], *, by_hand: str, cwd: Path | None = None, extra: Mapping[str, str] | None = None
) -> Printed:
    """Run a package client.

    Args:
        by_hand: how else to get the data; told where the client is missing
        extra: variables of its environment

    Raises:
        DataError: it is missing, or ended with an error; in one line.
    """
    program = command[0]
    if shutil.which(program) is None:
        raise DataError(f"{program} is missing here: {by_hand}")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(extra or {})}
    try:
        done = subprocess.run(
            list(command),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"`{' '.join(command[:3])}` took longer than {PATIENCE} seconds") from None
    except OSError as error:
        raise DataError(f"{program} can't be run: {error.strerror or error}") from None
    if done.returncode:
        raise DataError(
            f"`{_short(command)}` failed ({reason_in(done.stderr.decode(errors='replace'))}): is the network "
            "there? Nothing was written"
        )
    return Printed(*(one.decode("utf-8", errors="replace") for one in (done.stdout, done.stderr)))


def _short(command: Sequence[str]) -> str:
    """A command without options, as a reader would type it."""
    kept, skip = [Path(command[0]).name], False
    for word in command[1:]:
        if skip:
            skip = False
        elif word in ("-c", "-o"):
            skip = True
        elif not word.startswith("-"):
            kept.append(word)
    return " ".join(kept[:4])


def reason_in(printed: str) -> str:
    """The line that tells most: of those that are called errors the one on a failure, else the last line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("e:", "error", "npm err", "npm error"))]
    telling = [line for line in errors or lines if TELLING.search(line)]
    return (telling or errors or lines[-1:] or ["it said nothing"])[0].rstrip(".")
