"""Published versions of a guide: frozen, and readable for ever.

versions/N.json lists the files of version N by the hash of their content; the contents themselves lie in
versions/files/, each once, whatever number of versions and pages it belongs to. A version is what the guide
said: pages, numbers of visuals, answers. Style sheet, scripts and fonts are the current site's, so that
frozen pages speak with today's server and storage; what they rely on is written in docs/study/hooks.md.

Each manifest holds the hash of the one before, and versions/newest.sha256 that of the newest: none can be
changed, taken away or published a second time unnoticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from headwise.study import seal
from headwise.study.content import Guide
from headwise.study.errors import GuideError
from headwise.study.render.pages import Version
from headwise.training.files import replace_file, write_durably

HOME, STORE = "versions", "files"
_NUMBERED = re.compile(r"([1-9]\d*)\.json")
_HASH = re.compile(r"[0-9a-f]{64}")
ANSWERS = ("answers.json", "answers/index.html")


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """versions/N.json.

    Attributes:
        published: when, in UTC.
        note: what changed.
        previous: the SHA-256 of the manifest before; "" for the first.
        places: the ids that each activity's page holds.
        files: the SHA-256 of each file, by its way from the version's root.
    """

    guide: str
    version: int
    published: str
    note: str
    previous: str
    places: dict[str, list[str]]
    files: dict[str, str]


def published(folder: Path) -> list[Version]:
    """The versions of the guide in this folder, the oldest first.

    Raises:
        GuideError: a manifest can't be read.
    """
    made = [manifest(folder, number) for number in numbers(folder)]
    return [Version(one.version, one.published, one.note) for one in made]


def numbers(folder: Path) -> list[int]:
    """The numbers of the published versions."""
    home = folder / HOME
    if not home.is_dir():
        return []
    return sorted(int(found[1]) for path in home.iterdir() if (found := _NUMBERED.fullmatch(path.name)))


def manifest(folder: Path, number: int) -> Manifest:
    """The manifest of a version.

    Raises:
        GuideError: there is none, or it can't be read.
    """
    path = folder / HOME / f"{number}.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise GuideError(f"there is no version {number}", str(path)) from None
    except (msgspec.DecodeError, OSError) as error:
        raise GuideError(f"this is no manifest of a version: {error}", str(path), 1) from None
    if found.version != number:
        raise GuideError(
            f"this is the manifest of version {found.version}: its name is changed", str(path), 1
        )
    for name, key in found.files.items():
        if not stays_inside(name):
            raise GuideError(
                f"version {number} names the file {name!r}: names lead from the version's root downwards, "
                f"with / between folders, and no part is empty, . or ..",
                str(path),
                1,
            )
        if not _HASH.fullmatch(key):
            raise GuideError(f"{key!r} is no SHA-256 of {name} in version {number}", str(path), 1)
    return found


def stays_inside(name: str) -> bool:
    """Whether a file's name can't lead out of the folder it is put into, on any system."""
    return not set(name) & set("\\:\0") and all(part not in ("", ".", "..") for part in name.split("/"))


def places(folder: Path, number: int) -> dict[str, list[str]]:
    """The ids that each activity's page of a version holds."""
    return manifest(folder, number).places


def files(folder: Path, number: int, *, answers: bool = True) -> dict[str, bytes]:
    """Every file of a version, byte for byte as it was published.

    Args:
        answers: whether those that hold answers are among them. On the local server, which grades, none is.

    Raises:
        GuideError: one is missing or was changed since.
    """
    return {
        name: _content(folder, number, name, key)
        for name, key in manifest(folder, number).files.items()
        if answers or name not in ANSWERS
    }


def read(folder: Path, number: int, name: str) -> bytes | None:
    """One file of a version by its way from the version's root; None if it has none of that name.

    Raises:
        GuideError: the file is missing or was changed since.
    """
    key = manifest(folder, number).files.get(name)
    return None if key is None else _content(folder, number, name, key)


def check(folder: Path) -> list[GuideError]:
    """What is wrong with the published versions: files that are missing or changed, numbers left out."""
    errors: list[GuideError] = []
    found = numbers(folder)
    for place, number in enumerate(found, start=1):
        if number != place:
            errors.append(
                GuideError(
                    f"version {place} is missing: versions are numbered 1, 2, 3, ... and never taken away",
                    str(folder / HOME),
                )
            )
            break
    previous: dict[int, str] = {}
    for number in found:
        try:
            listed = manifest(folder, number)
        except GuideError as error:
            errors.append(error)
            continue
        previous[number] = listed.previous
        for name, key in listed.files.items():
            try:
                _content(folder, number, name, key)
            except GuideError as error:
                errors.append(error)
    return errors + seal.broken(folder / HOME, found, previous)


def orphans(folder: Path) -> list[Path]:
    """Stored files that no version holds: what a publishing that failed left behind. They do no harm."""
    try:
        used = {key for number in numbers(folder) for key in manifest(folder, number).files.values()}
    except GuideError:
        return []  # who knows what that manifest holds
    home = folder / HOME
    begun = sorted(home.glob(".*.new-*")) if home.is_dir() else []
    return begun + [path for path in _stored(folder) if path.name not in used]


def publish(guide: Guide, files: Mapping[str, bytes], version: Version) -> None:
    """Freeze files as a version. What an earlier publishing that failed left behind is taken away afterwards.

    Raises:
        GuideError: the version exists, isn't the next one, versions that exist aren't as they were, or the
            disk refuses; then there is no new version, and the earlier ones are as they were.
    """
    home = guide.folder / HOME
    target = home / f"{version.number}.json"
    known = numbers(guide.folder)
    if version.number in known:
        raise GuideError(f"version {version.number} exists, and a version is never altered", str(target))
    if version.number != len(known) + 1:
        raise GuideError(f"the next version is {len(known) + 1}, not {version.number}", str(target))
    faults = check(guide.folder)
    if faults:
        raise GuideError.of(faults)
    made = Manifest(
        guide=guide.id,
        version=version.number,
        published=version.published,
        note=version.note,
        previous=seal.hash_of(home / f"{version.number - 1}.json"),
        places=ids_within(guide),
        files=hashes(files),
    )
    left = orphans(guide.folder)  # as it is before: what somebody else publishes meanwhile is not among them
    try:
        _write(guide.folder, made, files)
    except OSError as error:
        raise GuideError(
            f"version {version.number} isn't published: {error.filename or home}: {error.strerror or error}. "
            f"Earlier versions are as they were; mend this, and publish again",
            str(target),
        ) from error
    _sweep(left, set(made.files.values()))


def ids_within(guide: Guide) -> dict[str, list[str]]:
    """What a manifest keeps of a guide's activities: the ids within each."""
    return {activity.id: activity.places() for activity in guide.activities.values()}


def hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """What a manifest keeps of files: the hash of each."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def _write(folder: Path, made: Manifest, files: Mapping[str, bytes]) -> None:
    """Contents first, then the manifest, without which there is no version, then what seals it."""
    for name, content in files.items():
        path = _path(folder, made.files[name])
        if not (path.is_file() and path.read_bytes() == content):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
    target = folder / HOME / f"{made.version}.json"
    text = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
    _write_new(target, text)
    newest = folder / HOME / seal.NEWEST
    before = newest.read_bytes() if newest.exists() else None
    try:
        replace_file(newest, seal.written(made.version, text))
    except BaseException:  # Ctrl-C too; a kill between the two is told by `check`, with what to do
        target.unlink()
        if before is None:
            newest.unlink(missing_ok=True)
        elif newest.read_bytes() != before:
            newest.write_bytes(before)
        raise


def _sweep(left: list[Path], used: set[str]) -> None:
    for path in left:
        if path.name not in used:
            with contextlib.suppress(OSError):  # another time, then
                path.unlink()
                path.parent.rmdir()


def next_version(folder: Path, note: str, now: datetime | None = None) -> Version:
    """What the next version is: its number, the time, and its note.

    Raises:
        GuideError: the note says nothing.
    """
    if not note.strip():
        raise GuideError('a version needs a note of what changed: --note "..."')
    when = (now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
    return Version(len(numbers(folder)) + 1, when.isoformat().replace("+00:00", "Z"), " ".join(note.split()))


def listed(guide: Guide, published: list[Version]) -> str:
    """The text of versions.json, which frozen pages read: which version is the newest, and which pages the
    current guide has."""
    data = {
        "guide": guide.id,
        "current": published[-1].number if published else None,
        "pages": list(guide.activities),
        "versions": [
            {"number": one.number, "published": one.published, "note": one.note} for one in published
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _path(folder: Path, key: str) -> Path:
    return folder / HOME / STORE / key[:2] / key


def _stored(folder: Path) -> Iterator[Path]:
    home = folder / HOME / STORE
    if home.is_dir():
        yield from (path for path in sorted(home.rglob("*")) if path.is_file())


def _content(folder: Path, number: int, name: str, key: str) -> bytes:
    path = _path(folder, key)
    try:
        content = path.read_bytes()
    except OSError:
        raise GuideError(f"{name} of version {number} is missing: bring the file back", str(path)) from None
    if hashlib.sha256(content).hexdigest() != key:
        raise GuideError(
            f"{name} of version {number} was altered: a version stays as it was; bring the file back",
            str(path),
        )
    return content


def _write_new(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and refuse one that exists, even if it came a moment ago."""
    scratch = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        write_durably(scratch, content)
        try:
            os.link(scratch, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            _create(path, content)
    except FileExistsError:
        raise GuideError("this version exists, and a version is never altered", str(path)) from None
    finally:
        scratch.unlink(missing_ok=True)


def _create(path: Path, content: bytes) -> None:
    """The same where files can't have two names; only a kill can leave a part of the file."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
