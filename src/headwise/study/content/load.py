"""A guide's folder, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headwise.study.content.anchors_file import parse_anchors
from headwise.study.content.cards import Card, Deck
from headwise.study.content.facts import Fact, FactEntry
from headwise.study.content.guide import Activity, Guide, GuideFile
from headwise.study.content.inherited import with_sources
from headwise.study.content.lesson_file import parse_lesson
from headwise.study.content.quiz import Question, Quiz
from headwise.study.content.resources import Resource, Resources
from headwise.study.content.sources import Anchor, Source, SourceEntry, canonical
from headwise.study.content.toml_file import TomlFile, plain_sources
from headwise.study.content.visual import Input, Visual
from headwise.study.errors import GuideError

T = TypeVar("T")

TABLES: dict[str, tuple[type[Any], str, type[Any]]] = {
    ".quiz.toml": (Quiz, "questions", Question),
    ".cards.toml": (Deck, "cards", Card),
    ".visual.toml": (Visual, "inputs", Input),
    ".resources.toml": (Resources, "resources", Resource),
}


def load_guide(folder: Path | str) -> Guide:
    """The guide in this folder.

    Raises:
        GuideError: something can't be read; `others` of it holds whatever else was found.
    """
    guide, errors = read_guide(folder)
    if errors or guide is None:
        raise GuideError.of(errors)
    return guide


def read_guide(folder: Path | str) -> tuple[Guide | None, list[GuideError]]:
    """As much of the guide in this folder as can be read, and what is wrong, by file and line. None where
    guide.toml itself can't be read."""
    return _Reading(Path(folder)).read()


def no_guide(folder: Path) -> GuideError | None:
    """Why a folder that was named can be no guide's; None where it holds a guide.toml."""
    if not folder.exists():
        return GuideError("there is no such folder", str(folder))
    if not folder.is_dir():
        return GuideError("this is a file, and a guide is a folder", str(folder))
    if not (folder / "guide.toml").exists():
        return GuideError("a guide needs this file, and there is none", str(folder / "guide.toml"))
    return None


class _Reading:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[GuideError] = []

    def read(self) -> tuple[Guide | None, list[GuideError]]:
        none = no_guide(self.folder)
        if none is not None:
            return None, [none]
        file = self._toml("guide.toml")
        if file is None:
            return None, self.errors
        try:
            head = file.convert(file.data, GuideFile)
        except GuideError as error:
            return None, [error]
        anchors = self._anchors(head.paper.arxiv)
        made = Guide(
            id=head.id,
            title=head.title,
            paper=head.paper,
            parts=head.parts,
            activities=with_sources(self._ordered(head, file, self._activities())),
            sources=self._sources(head, anchors),
            facts=self._facts(),
            anchors=anchors,
            folder=self.folder,
            language=head.language,
            intro=head.intro,
        )
        return made, sorted(self.errors, key=lambda error: (error.file, error.line))

    def _text(self, name: str) -> str | None:
        path = self.folder / name
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self.errors.append(GuideError("a guide needs this file, and there is none", str(path)))
        except UnicodeDecodeError as error:
            line = path.read_bytes()[: error.start].count(b"\n") + 1
            self.errors.append(GuideError("this is not UTF-8: save the file as UTF-8", str(path), line))
        except OSError as error:
            self.errors.append(GuideError(f"this can't be read: {error.strerror}", str(path)))
        return None

    def _toml(self, name: str) -> TomlFile | None:
        text = self._text(name)
        try:
            return None if text is None else TomlFile(text, str(self.folder / name))
        except GuideError as error:
            self.errors.append(error)
            return None

    def _entries(self, name: str, kind: type[T]) -> list[tuple[str, T, int]]:
        """The tables of a file, each with its key and line."""
        file = self._toml(name)
        made = []
        for key, value in ({} if file is None else file.data).items():
            try:
                entry = plain_sources(value) if isinstance(value, dict) else value
                made.append((key, file.convert(entry, kind, (key,)), file.lines[(key,)]))  # type: ignore[union-attr]
            except GuideError as error:
                self.errors.append(GuideError(f"{key}: {error.message}", error.file, error.line))
        return made

    def _anchors(self, paper: str) -> dict[str, Anchor]:
        text = self._text("anchors.json")
        name = str(self.folder / "anchors.json")
        found = None if text is None else parse_anchors(text, name, self.errors)
        if found is None:
            return {}
        if paper and found.paper != paper:
            self.errors.append(
                GuideError(f"these are the places of {found.paper}, but guide.toml says {paper}", name, 1)
            )
        return found.anchors

    def _sources(self, head: GuideFile, anchors: dict[str, Anchor]) -> dict[str, Source]:
        sources: dict[str, Source] = {}
        for key, entry, line in self._entries("sources.toml", SourceEntry):
            name = canonical(key)
            if name in sources:
                self.errors.append(
                    GuideError(
                        f"{key} is the place of line {sources[name].line}: keep one of them",
                        str(self.folder / "sources.toml"),
                        line,
                    )
                )
                continue
            anchor = anchors.get(name)
            sources[name] = Source(
                **msgspec.structs.asdict(entry),
                id=name,
                kind="" if anchor is None else anchor.kind,
                label="" if anchor is None else anchor.label,
                url=head.paper.url(name),
                line=line,
            )
        return sources

    def _facts(self) -> dict[str, Fact]:
        return {
            key: Fact(**msgspec.structs.asdict(entry), id=key, line=line)
            for key, entry, line in self._entries("facts.toml", FactEntry)
        }

    def _activities(self) -> dict[str, Activity]:
        found: dict[str, Activity] = {}
        home = self.folder / "activities"
        try:
            paths = sorted(home.iterdir())
        except FileNotFoundError:
            self.errors.append(GuideError("a guide needs this folder, and there is none", str(home)))
            return {}
        except OSError as error:
            self.errors.append(GuideError(f"this can't be read: {error.strerror}", str(home)))
            return {}
        for path in paths:
            if path.name.startswith("."):
                continue
            activity = self._activity(f"activities/{path.name}")
            if activity is None:
                continue
            if activity.id in found:
                self.errors.append(
                    GuideError(f"{found[activity.id].file} has the id {activity.id!r} too", str(path), 1)
                )
                continue
            found[activity.id] = activity
        return found

    def _activity(self, file: str) -> Activity | None:
        name = str(self.folder / file)
        if file.endswith(".md"):
            text = self._text(file)
            return None if text is None else parse_lesson(text, name, file, self.errors)
        for ending, (kind, items, item_kind) in TABLES.items():
            if file.endswith(ending):
                toml = self._toml(file)
                if toml is None:
                    return None
                made: Activity | None = toml.convert_with_items(
                    kind, items, item_kind, self.errors, file=file, line=1
                )
                return made
        endings = ", ".join((".md", *TABLES))
        self.errors.append(GuideError(f"an activity's file ends with one of {endings}", name))
        return None

    def _ordered(self, head: GuideFile, toml: TomlFile, found: dict[str, Activity]) -> dict[str, Activity]:
        """The activities in the order of the parts."""
        ordered: dict[str, Activity] = {}
        for number, part in enumerate(head.parts):
            for name in part.activities:
                place = ("parts", number, "activities")
                if name in ordered:
                    self.errors.append(toml.item_error(f"{name} is listed twice", name, *place))
                elif name in found:
                    ordered[name] = found[name]
                elif (self.folder / "activities").is_dir():  # else that is what is told
                    message = f"no file in activities/ has the id {name!r}"
                    self.errors.append(toml.item_error(message, name, *place))
        for name, activity in found.items():
            if name not in ordered:
                self.errors.append(
                    GuideError(
                        f"guide.toml lists no {name!r}: add it to a part", str(self.folder / activity.file), 1
                    )
                )
        return ordered
