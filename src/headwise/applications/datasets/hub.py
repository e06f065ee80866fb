"""Data of the Hugging Face hub, fetched by its own library `datasets`, in the documented formats.

Only data is read. Datasets that come with code, and formats that can hold code (pickles), are refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.applications.base import Say
from headwise.applications.datasets.catalogue import FACTS
from headwise.applications.datasets.clients import beside, cache_folder
from headwise.applications.datasets.hub_columns import WRITERS
from headwise.applications.errors import DataError
from headwise.training.extras import need

PREFIX = "hub:"
OLDEST = 4
"""The first version of `datasets` that runs no code of a dataset's."""
FORMATS = ("arrow", "csv", "imagefolder", "json", "parquet", "text")
"""What is read; all of them hold data alone."""
SPLITS = {"train": ("train",), "val": ("validation", "valid", "val", "dev"), "test": ("test",)}
FORM = "write hub:OWNER/NAME, or hub:OWNER/NAME:CONFIG@REVISION,COLUMN=THEIRS with any of these parts"
_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(:(?P<config>[\w.+-]+))?(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class HubName:
    """What `--data hub:...` names.

    Attributes:
        place: owner/name on the hub, or a folder of this machine
        columns: the dataset's name for each of ours
    """

    place: str
    local: bool
    config: str | None = None
    revision: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


def is_hub(path: Path | str) -> bool:
    """Does a path of data name a dataset of the hub?"""
    return str(path).startswith(PREFIX)


def parse(text: str) -> HubName:
    """hub:OWNER/NAME:CONFIG@REVISION,COLUMN=THEIRS; or hub:FOLDER, ... with columns, for one on this machine.

    Raises:
        DataError: another form.
    """
    place, *pairs = text.removeprefix(PREFIX).split(",")
    columns = {}
    for pair in pairs:
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not (ours and equals and theirs):
            raise DataError(f"{text}: {pair!r} is no COLUMN=THEIRS; {FORM}")
        columns[ours] = theirs
    if place and Path(place).is_dir():
        return HubName(place, True, columns=columns)
    match = _NAME.fullmatch(place)
    if match is None:
        raise DataError(f"{text}: {FORM}; or the folder of a dataset that is there")
    return HubName(match["name"], False, match["config"], match["revision"], columns)


def bring(path: Path | str, application: str, say: Say) -> Path:
    """The data of the hub as a folder that the application reads. It is kept in the cache.

    Raises:
        DataError: another form of name, no network, no such dataset, columns that don't fit.
        MissingExtra: `datasets` isn't installed.
    """
    text = str(path)
    name = parse(text)
    if application not in WRITERS:
        raise DataError(f"{text}: {application} reads no data of the hub, only of {', '.join(WRITERS)}")
    if not name.local:
        say(f"asking the Hugging Face hub for {name.place}")
    with _quietly():
        found = _renamed(_load(name, text), name, text)
    key = [text, {split: (len(rows), rows._fingerprint) for split, rows in found.items()}]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
    slug = re.sub(r"[^\w.-]+", "-", Path(name.place).name if name.local else name.place)
    folder = cache_folder() / "hub" / application / f"{slug}-{digest}"
    if not (folder / FACTS).is_file():
        with beside(folder) as made:
            try:
                counts = WRITERS[application](found, made, text)
            except OSError as error:
                raise DataError(f"{text} can't be written to {folder}: {error.strerror or error}") from None
            facts = {
                "name": text,
                "application": application,
                "counts": counts,
                "columns": dict(name.columns),
            }
            (made / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
            with suppress(OSError):  # another process brought the same
                made.rename(folder)
    try:
        counts = json.loads((folder / FACTS).read_text(encoding="utf-8"))["counts"]
    except (OSError, ValueError, KeyError):
        raise DataError(f"{text} can't be kept in {folder}: remove that folder, if it is there") from None
    say(f"{text}: " + ", ".join(f"{split} {count:,}" for split, count in counts.items()) + f", in {folder}")
    if "test" not in counts and "all" not in counts:
        say("it has no test set: `headwise evaluate` needs --split val, which chose the checkpoint too")
    return folder


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the hub's lines on each of its attempts: what went wrong is told once, by us."""
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _load(name: HubName, text: str) -> Mapping[str, Any]:
    """Its splits by our names."""
    hub: Any = need("datasets", "the hub", "'headwise[hub]'")
    if int(hub.__version__.partition(".")[0]) < OLDEST:
        raise DataError(f"datasets {hub.__version__} runs code of datasets: pip install 'datasets>={OLDEST}'")
    if not sys.stderr.isatty():
        hub.disable_progress_bars()
    try:
        if name.local and any(
            (Path(name.place) / one).is_file() for one in ("dataset_dict.json", "state.json")
        ):
            found = hub.load_from_disk(name.place)
        else:
            builder = hub.load_dataset_builder(name.place, name.config, revision=name.revision)
            form = type(builder).__module__.rpartition(".")[2]
            if not type(builder).__module__.startswith("datasets.packaged_modules.") or form not in FORMATS:
                raise DataError(f"{text} is in the format {form}: headwise reads {', '.join(FORMATS)} alone")
            builder.download_and_prepare()
            found = builder.as_dataset()
    except DataError:
        raise
    except Exception as error:  # the library raises errors of many packages
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = " ".join(lines)[:300] or type(error).__name__
        hint = "" if name.local else "; is the network there, and the name right?"
        raise DataError(f"{text} can't be read: {reason.rstrip('.')}{hint}") from None
    whole: Mapping[str, Any] = {"train": found} if isinstance(found, hub.Dataset) else found
    splits = {
        ours: next((whole[one] for one in theirs if one in whole), None) for ours, theirs in SPLITS.items()
    }
    if splits["train"] is None:
        raise DataError(f"{text} has no split train, only {', '.join(map(str, whole))}")
    return {split: rows for split, rows in splits.items() if rows is not None}


def _renamed(found: Mapping[str, Any], name: HubName, text: str) -> dict[str, Any]:
    """With our names for the columns that were named."""
    renamed = {}
    taken = {theirs: ours for ours, theirs in name.columns.items()}
    if len(taken) < len(name.columns):
        raise DataError(f"{text}: a column can stand for one of ours alone")
    for split, rows in found.items():
        for theirs in taken:
            if theirs not in rows.column_names:
                raise DataError(f"{text} has no column {theirs}, only {', '.join(rows.column_names)}")
        gone = [one for one in rows.column_names if one in name.columns and one not in taken]
        renamed[split] = rows.remove_columns(gone).rename_columns(taken)
    return renamed
