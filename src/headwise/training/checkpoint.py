"""Checkpoints: a folder with the weights, the optimizer and everything else, written whole or not at all.

    checkpoints/step-1200/model.safetensors      weights, by name
                          optimizer.safetensors  Adam's averages: "exp_avg/encoder.layers.0..." and so on
                          state.json             step, data position, random states, best so far; sizes and
                                                 SHA-256 of the other two, and a digest of itself

A checkpoint becomes visible by one rename, after all its bytes are on the disk; older ones are deleted
after that. So a process may be killed at any moment: the newest visible checkpoint is whole. Files that were
damaged later (a disk, a copy that broke off) are found by their hash, and the one before is used.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headwise._version import __version__
from headwise.training import tensors as tensor_files
from headwise.training.files import replace_file, sync_folder, to_json, write_folder

FORMAT = "headwise-checkpoint"
VERSION = 1
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
_NAME = re.compile(r"step-(\d+)")


class CheckpointError(ValueError):
    """A checkpoint that can't be used, in one line."""


@dataclass(frozen=True)
class Checkpoint:
    """One that was read and found whole."""

    folder: Path
    state: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]

    @property
    def step(self) -> int:
        return int(self.state["step"])


def save_checkpoint(
    run: Path,
    step: int,
    *,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    state: Mapping[str, Any],
) -> Path:
    """Write checkpoints/step-`step` of a run, and return its folder.

    Raises:
        OSError: the disk is full or refuses; what was there before is untouched.
    """
    files = {MODEL: tensor_files.pack(weights), OPTIMIZER: tensor_files.pack(optimizer)}
    sums = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    }
    folder = run / "checkpoints" / f"step-{step}"
    write_folder(folder, {**files, STATE: _state_file({**state, "step": step}, sums)})
    return folder


def update_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a checkpoint's state.json anew, in one instant: more became known, and the tensors are the same.

    Raises:
        CheckpointError: the present one can't be read.
        OSError: the disk is full or refuses; the present one stays.
    """
    before = read_state(folder)
    replace_file(folder / STATE, _state_file({**state, "step": before["step"]}, before["files"]))


def read_state(folder: Path) -> dict[str, Any]:
    """The state.json of a checkpoint, verified.

    Raises:
        CheckpointError: it is missing, damaged, of another program or of a version that isn't known.
    """
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        what = (
            "is missing"
            if isinstance(error, FileNotFoundError)
            else "can't be read: it is damaged or cut off"
        )
        raise CheckpointError(f"checkpoint {folder}: {STATE} {what}") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {folder}: {STATE} isn't headwise's")
    if state.get("version") != VERSION:
        raise CheckpointError(
            f"checkpoint {folder} has format version {state.get('version')} (written by headwise "
            f"{state.get('headwise')}); this headwise, {__version__}, reads version {VERSION}"
        )
    if state.get("digest") != _digest(state):
        raise CheckpointError(f"checkpoint {folder}: {STATE} was changed after it was written")
    return state


def load_checkpoint(folder: Path, *, with_optimizer: bool = True) -> Checkpoint:
    """Read a checkpoint and verify all of it.

    Raises:
        CheckpointError: a file is missing, cut off or changed, or the format is another.
    """
    state = read_state(folder)
    tensors: dict[str, dict[str, Tensor]] = {}
    for name in (MODEL, OPTIMIZER) if with_optimizer else (MODEL,):
        expected = state["files"][name]
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise CheckpointError(f"checkpoint {folder}: {name} can't be read: {error.strerror}") from None
        if len(content) != expected["bytes"]:
            raise CheckpointError(
                f"checkpoint {folder}: {name} has {len(content)} bytes of {expected['bytes']}: it is cut off"
            )
        if hashlib.sha256(content).hexdigest() != expected["sha256"]:
            raise CheckpointError(f"checkpoint {folder}: {name} isn't what was written: its SHA-256 differs")
        try:
            tensors[name] = tensor_files.unpack(content)
        except ValueError as error:
            raise CheckpointError(f"checkpoint {folder}: {name}: {error}") from None
    return Checkpoint(folder, state, tensors[MODEL], tensors.get(OPTIMIZER, {}))


def checkpoint_folders(run: Path) -> list[Path]:
    """All visible checkpoints of a run, the oldest first; unverified."""
    found = []
    for folder in (run / "checkpoints").glob("step-*"):
        match = _NAME.fullmatch(folder.name)
        if match and folder.is_dir():
            found.append((int(match[1]), folder))
    return [folder for _, folder in sorted(found)]


def latest_checkpoint(
    run: Path, *, with_optimizer: bool = True, warn: Callable[[str], None] = lambda line: None
) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where there are no checkpoints at all.

    Args:
        warn: is told one line for each checkpoint that had to be passed over.

    Raises:
        CheckpointError: there are some, and none can be used.
    """
    folders = checkpoint_folders(run)
    failure = None
    for folder in reversed(folders):
        try:
            return load_checkpoint(folder, with_optimizer=with_optimizer)
        except CheckpointError as error:
            failure = error
            warn(f"{error}; trying the one before")
    if failure is not None:
        raise CheckpointError(
            f"none of the {len(folders)} checkpoints of {run} can be used; the oldest: {failure}"
        )
    return None


def prune(run: Path, keep: int, always: Iterable[str] = ()) -> None:
    """Delete all checkpoints but the last `keep` and those named in `always`."""
    folders = checkpoint_folders(run)
    for folder in folders[: max(0, len(folders) - keep)]:
        if folder.name not in set(always):
            doomed = folder.with_name(f".{folder.name}.old-0")  # at once invisible, then deleted
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
    sync_folder(run / "checkpoints")


def _state_file(state: Mapping[str, Any], files: Mapping[str, Any]) -> bytes:
    head = {"format": FORMAT, "version": VERSION, "headwise": __version__}
    whole = json.loads(to_json({**head, **state, "files": files}))  # as it will be read, for the digest
    return to_json({**whole, "digest": _digest(whole)})


def _digest(state: Mapping[str, Any]) -> str:
    content = {name: value for name, value in state.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
