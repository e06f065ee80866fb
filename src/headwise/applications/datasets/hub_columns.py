"""Which columns of a hub's dataset an application reads, and how they are written down."""

from __future__ import annotations

import io
import json
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
    first = train[0] if len(train) else {}
    texts = first.get("translation") or {} if inside else first
    languages = [name for name, value in texts.items() if LANGUAGE.fullmatch(name) and isinstance(value, str)]
    if len(languages) < 2:
        raise DataError(
            f"{text} has no column translation and no columns named by languages, such as en and de, only "
            f"{', '.join(train.column_names)}: say which ones are meant, hub:...,en=NAME,de=NAME"
        )

    def rows(some: Any) -> Iterator[dict[str, Any]]:
        for row in some:
            texts = row["translation"] if inside else row
            lines = {name: _one_line(texts[name]) for name in languages}
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
    names = [_file_name(name) for name in getattr(feature, "names", None) or []]
    if len(set(names)) < len(names):
        raise DataError(f"{text} has classes whose names differ only in signs that folders can't have")
    counts = {}
    for split, rows in parts.items():
        inside = folder if len(parts) == 1 else folder / split
        for number, row in enumerate(rows.cast_column(image, hub.Image(decode=False))):
            given = row[label]
            if given is None or given == -1:  # as the hub marks test images whose class is a secret
                raise DataError(f"{text}, {split}, row {number}: it has no {label}")
            name = names[given] if names else _file_name(str(given))
            into = inside / name
            into.mkdir(parents=True, exist_ok=True)
            content, suffix = _image(row[image], f"{text}, {split}, row {number}")
            (into / f"{number:06}{suffix}").write_bytes(content)
        counts["all" if len(parts) == 1 else split] = len(rows)
    return counts


def _file_name(name: str) -> str:
    """A class as the name of a folder."""
    kept = re.sub(r"[^\w .,()+-]", "_", name).strip(" .")
    return kept or "_"


def _image(given: Any, place: str) -> tuple[bytes, str]:
    """The bytes of an image file, and what its name ends in."""
    content = given.get("bytes") if isinstance(given, dict) else None
    if content is None and isinstance(given, dict) and given.get("path"):
        content = Path(given["path"]).read_bytes()
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
