"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHUNK = 1 << 22


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows a folder's names. (Nothing, where folders can't be opened.)"""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of another in one instant: readers find the old or the new one, whole."""
    scratch = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        write_durably(scratch, content)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder with files in one instant: written under another name, brought to the disk, then renamed.

    A folder that has the name already is moved aside first and deleted last. A process that is killed
    leaves at most a folder that starts with a dot: see `sweep`.
    """
    scratch = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    aside = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    try:
        scratch.mkdir(parents=True)
        for name, content in files.items():
            write_durably(scratch / name, content)
        sync_folder(scratch)
        if folder.exists():
            folder.rename(aside)
        scratch.rename(folder)
        sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        if aside.exists() and not folder.exists():
            aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Delete what killed processes left half written."""
    for pattern in (".*.new-*", ".*.old-*"):
        for left in folder.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def to_json(value: Any) -> bytes:
    """JSON that every reader takes: NaN and infinities, which JSON has no words for, become null."""
    return (json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def to_json_line(value: Any) -> str:
    """The same on one line."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
