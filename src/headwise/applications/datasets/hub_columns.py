"""Which columns of a hub's dataset an application reads, and how they are written down."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.applications.datasets.tables import write_table
from headwise.applications.errors import DataError
from headwise.applications.text_files import split_of
from headwise.training.extras import need

Splits = Mapping[str, Any]
Rows = Mapping[str, list[dict[str, Any]]]
LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,8})?")
TEXTS = ("text", "article", "document", "dialogue")
SUMMARIES = ("summary", "highlights")
IMAGES = ("image", "img")
LABELS = ("label", "labels", "fine_label")
ENOUGH = 100
"""Rows that are looked at to see which languages there are."""
SIGNATURES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg"}


def _one_line(text: Any) -> str:
    return " ".join(str(text or "").split())


def _column(columns: Sequence[str], known: Sequence[str], text: str) -> str:
    for name in known:
        if name in columns:
            return name
    raise DataError(
        f"{text} has no column {' or '.join(known)}, only {', '.join(columns)}: say which one is meant, "
        f"hub:...,{known[0]}={columns[0] if columns else 'NAME'}"
    )


def _parted(splits: Splits, rows: Callable[[Any], Iterator[dict[str, Any]]], key: str) -> Rows:
    """The rows of each split. What a dataset without validation lacks is taken out of train, by the SHA-256
    of the texts that `key` names; so is the test, where there is neither."""
    found = {split: list(rows(some)) for split, some in splits.items()}
    if "val" in found:
        return found
    missing = {"val"} if "test" in found else {"val", "test"}
    train, found["train"] = found["train"], []
    found |= {split: [] for split in missing}
    for row in train:
        chosen = split_of(row[key])
        found[chosen if chosen in missing else "train"].append(row)
    return found


def _counted(parts: Rows, text: str) -> dict[str, int]:
    counts = {split: len(rows) for split, rows in parts.items()}
    empty = [split for split, count in counts.items() if not count]
    if empty:
        raise DataError(f"{text} has no usable rows for {empty[0]}: it is too small")
    return counts


def write_translation(splits: Splits, folder: Path, text: str) -> dict[str, int]:
    """A column `translation` with a text for each language, or a column for each, named by its code."""
    train = splits["train"]
    inside = "translation" in train.column_names
    held: dict[str, Any] = {}  # what each language holds first
    for row in train.select(range(min(len(train), ENOUGH))):
        texts = row["translation"] if inside else row
        if not isinstance(texts, dict | None):
            raise DataError(f"{text}: translation holds no text by language, such as en and de")
        held = {**{name: value for name, value in (texts or {}).items() if value is not None}, **held}
    languages = [name for name, value in held.items() if LANGUAGE.fullmatch(name) and isinstance(value, str)]
    if len(languages) < 2:
        raise DataError(
            f"{text} has no column translation and no columns named by languages, such as en and de, only "
            f"{', '.join(train.column_names)}: say which ones are meant, hub:...,en=NAME,de=NAME"
        )

    def rows(some: Any) -> Iterator[dict[str, Any]]:
        for row in some:
            texts = (row["translation"] if inside else row) or {}
            lines = {name: _one_line(texts.get(name)) for name in languages}
            if all(lines.values()):
                yield lines

    parts = _parted(splits, rows, languages[0])
    counts = _counted(parts, text)
    for split, lines in parts.items():
        for name in languages:
            content = "".join(f"{line[name]}\n" for line in lines)
            (folder / f"{split}.{name}").write_text(content, encoding="utf-8")
    return counts


def write_summarization(splits: Splits, folder: Path, text: str) -> dict[str, int]:
    """A long text and its summary."""
    columns = splits["train"].column_names
    long, short = _column(columns, TEXTS, text), _column(columns, SUMMARIES, text)

    def rows(some: Any) -> Iterator[dict[str, Any]]:
        for row in some:
            found = {"text": _one_line(row[long]), "summary": _one_line(row[short])}
            if all(found.values()):
                yield found

    parts = _parted(splits, rows, "text")
    counts = _counted(parts, text)
    for split, found in parts.items():
        write_table(folder / f"{split}.jsonl", found)
    return counts


def write_questions(splits: Splits, folder: Path, text: str) -> dict[str, int]:
    """SQuAD's columns: context, question, answers (texts and where each starts), perhaps title; written in
    SQuAD's format. Questions without an answer are left out."""
    columns = splits["train"].column_names
    for name in ("context", "question", "answers"):
        _column(columns, (name,), text)

    def rows(some: Any) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(some):
            answers = row["answers"]
            if not (isinstance(answers, dict) and {"text", "answer_start"} <= set(answers)):
                raise DataError(f"{text}: answers has no text and answer_start, as SQuAD's have")
            if len(answers["text"] or ()) != len(answers["answer_start"] or ()):
                raise DataError(f"{text}, row {number}: each of its answers needs a text and an answer_start")
            if answers["text"]:
                title = str(row.get("title") or row["context"])
                pairs = zip(answers["text"], answers["answer_start"], strict=True)
                asked = {
                    "id": str(row.get("id", number)),
                    "question": row["question"],
                    "answers": [{"text": one, "answer_start": start} for one, start in pairs],
                }
                yield {"title": title, "context": row["context"], "asked": asked}

    parts = _parted(splits, rows, "title")
    counts = _counted(parts, text)
    for split, found in parts.items():
        articles: dict[str, dict[str, list[Any]]] = {}
        for row in found:
            articles.setdefault(row["title"], {}).setdefault(row["context"], []).append(row["asked"])
        data = [
            {
                "title": title,
                "paragraphs": [{"context": one, "qas": asked} for one, asked in paragraphs.items()],
            }
            for title, paragraphs in articles.items()
        ]
        content = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        (folder / f"{split}.json").write_text(content, encoding="utf-8")
    return counts


def write_images(splits: Splits, folder: Path, text: str) -> dict[str, int]:
    """An image and its class; a folder of image files for each class. Where there is no test, validation
    becomes it; where there is neither, the images are divided as those of any folder."""
    columns = splits["train"].column_names
    image, label = _column(columns, IMAGES, text), _column(columns, LABELS, text)
    hub: Any = need("datasets", "the hub", "'headwise[hub]'")
    parts = {{"val": "valid"}.get(split, split): rows for split, rows in splits.items()}
    if "test" not in parts and "valid" in parts:
        parts["test"] = parts.pop("valid")
    feature = splits["train"].features[label]
    known, folders = getattr(feature, "names", None), _Folders(text, alone=len(parts) == 1)
    for one in known or ():
        folders.of(one)
    homes, counts = _homes(hub, text), {}
    for split, rows in parts.items():
        inside = folder if len(parts) == 1 else folder / split
        try:
            rows = rows.cast_column(image, hub.Image(decode=False))
        except Exception as error:  # the library raises errors of many packages
            raise DataError(
                f"{text}, {split}: {image} holds no images, or {label} no classes ({error})"
            ) from None
        for number, row in enumerate(rows):
            given, place = row[label], f"{text}, {split}, row {number}"
            if given is None or given == -1:  # as the hub marks test images whose class is a secret
                raise DataError(f"{place}: it has no {label}")
            if known and not 0 <= given < len(known):
                raise DataError(f"{place}: {label} {given}, and there are {len(known)} classes")
            into = inside / folders.of(known[given] if known else str(given))
            into.mkdir(parents=True, exist_ok=True)
            content, suffix = _image(row[image], place, homes)
            (into / f"{number:06}{suffix}").write_bytes(content)
        counts["all" if len(parts) == 1 else split] = len(rows)
    return counts


class _Folders:
    """A folder for each class, and one class alone.

    Args:
        alone: they stand where folders of splits could: their names are none of those
    """

    def __init__(self, text: str, *, alone: bool) -> None:
        self._text, self._alone = text, alone
        self._class: dict[str, str] = {}

    def of(self, name: str) -> str:
        kept = _file_name(name)
        if self._alone and kept in ("train", "valid", "test"):
            kept += "_"
        if self._class.setdefault(kept, name) != name:
            raise DataError(
                f"{self._text} has classes whose names differ only in signs that folders can't have"
            )
        return kept


def _homes(hub: Any, text: str) -> list[Path]:
    """Where the files of a dataset may lie: its own folder, or the caches of the hub's libraries."""
    local = Path(text.removeprefix("hub:").partition(",")[0])
    constants: Any = need("huggingface_hub.constants", "the hub", "'headwise[hub]'")
    caches = (
        hub.config.HF_DATASETS_CACHE,
        hub.config.DOWNLOADED_DATASETS_PATH,
        hub.config.EXTRACTED_DATASETS_PATH,
        constants.HF_HUB_CACHE,
    )
    return [Path(os.path.abspath(one)) for one in ([local] if local.is_dir() else caches)]


def _file_name(name: str) -> str:
    """A class as the name of a folder."""
    kept = re.sub(r"[^\w .,()+-]", "_", name).strip(" .")
    return kept or "_"


def _image(given: Any, place: str, homes: Sequence[Path]) -> tuple[bytes, str]:
    """The bytes of an image file, and what its name ends in. A table may name files; those of the dataset are
    read, and no others."""
    content = given.get("bytes") if isinstance(given, dict) else None
    if content is None and isinstance(given, dict) and given.get("path"):
        file = Path(os.path.abspath(given["path"]))  # whatever a table says, its ".." too
        if not any(file.is_relative_to(home) for home in homes):
            raise DataError(f"{place}: its image is said to be {file}, which is no file of this dataset")
        if not file.is_file():
            raise DataError(f"{place}: its image {file} isn't there")
        content = file.read_bytes()
    if not content:
        raise DataError(f"{place}: it has no image")
    for signature, suffix in SIGNATURES.items():
        if content.startswith(signature):
            return content, suffix
    pil = need("PIL.Image", "reading images")
    held = io.BytesIO()
    try:
        pil.open(io.BytesIO(content)).convert("RGB").save(held, "PNG")
    except Exception as error:  # each format's reader fails in ways of its own on damaged files
        raise DataError(f"{place}: its image can't be read: {error}") from None
    return held.getvalue(), ".png"


Writer = Callable[[Splits, Path, str], dict[str, int]]
WRITERS: Mapping[str, Writer] = {
    "translation": write_translation,
    "summarization": write_summarization,
    "question-answering": write_questions,
    "vision": write_images,
}
