"""A guide as the server shows it: pages built into a cache, keys of its questions kept beside them.

Pages show what the guide's files say and what headwise computes. So they are built again when the content of
one of the guide's files changes, when headwise or a package that it computes with is another, or when they
are gone from the cache. Until new ones are whole, the old ones stay; a guide with an error keeps them, and
the error is printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import headwise
from headwise.study.errors import GuideError

OLD = 24 * 60 * 60
"""Seconds after which pages that nobody used are removed from the cache."""

FRONT = "index.html"

LOOK_EVERY = 1.0
"""Seconds between two looks at the guide's files."""

PACKAGES = ("torch", "fsrs", "jinja2", "markdown-it-py", "mdit-py-plugins", "pygments")
"""Pages and numbers depend on their versions."""


@dataclass(frozen=True)
class Shown:
    """Built pages: their folder, and what the server has to know of the guide.

    Attributes:
        keys: of every question, by the version ("current" or a number) and the question's id.
        decks: (id, rev) of each card, by the deck's id, in teaching order.
    """

    pages: Path
    id: str
    title: str
    keys: dict[str, dict[str, dict[str, Any]]]
    decks: dict[str, list[tuple[str, int]]]
    activities: list[str]

    def key(self, question: str, version: str) -> dict[str, Any] | None:
        """The key of a question in a version; None if it has no such question."""
        return self.keys.get(version, {}).get(question)


Build = Callable[[Path, Path], dict[str, Any]]
"""Builds the pages of the guide in one folder into another, which is empty; gives what `Shown` holds beside
them. Raises GuideError."""


class Site:
    """A guide, built when needed.

    Args:
        folder: the guide's.
        cache: where pages are built.
        build: see `Build`.
        tell: prints a line for whoever started the server.
    """

    def __init__(self, folder: Path, cache: Path, build: Build, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self._cache = cache / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self._build = build
        self._tell = tell
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._seen = glance(folder)
        self._stamp = stamp(folder)
        self._building: threading.Thread | None = None
        self._lost = ""  # the stamp for which pages that are gone couldn't be built again
        self._shown = self._first()

    def shown(self) -> Shown:
        """The newest pages that are whole."""
        return self._shown

    def look(self) -> Shown:
        """The same, after a look at the guide, for whoever opens a page: where it has changed, other pages
        are built from now on."""
        if self._looks_late():
            with self._lock:
                if self._looks_late():  # nobody else has looked meanwhile
                    self._look()
                    self._looked = time.monotonic()
        return self._shown

    def _looks_late(self) -> bool:
        return self._building is None and time.monotonic() - self._looked >= LOOK_EVERY

    def _look(self) -> None:
        gone, seen = self._gone(), glance(self.folder)
        if not gone and seen == self._seen:
            return
        found, self._seen = stamp(self.folder), seen
        if gone:
            self._bring_back(found)
        elif found != self._stamp:
            self._stamp = found
            self._building = threading.Thread(target=self._again, args=(found,), daemon=True)
            self._building.start()

    def wait(self) -> None:
        """Until no pages are being built."""
        building = self._building
        if building is not None:
            building.join()

    def _first(self) -> Shown:
        try:
            return self._made(self._stamp)
        except (GuideError, OSError) as error:
            older = self._newest()
            if older is None:
                raise
            self._tell(f"{error}\nThe pages that were built before this error are shown.")
            return older

    def _again(self, found: str) -> None:
        try:
            made = self._made(found)
        except Exception as error:  # whatever an author broke, the old pages stay
            self._tell(f"{error}\nThe pages stay as they were until this is mended.")
        else:
            with self._lock:
                self._shown = made
            self._tell("The guide has changed: its pages are built again.")
        finally:
            self._building = None

    def _gone(self) -> bool:
        """Whether somebody emptied the cache; pages that are there are marked as in use."""
        if not (self._shown.pages / FRONT).is_file():
            return True
        _touch(self._shown.pages.parent)
        return False

    def _bring_back(self, found: str) -> None:
        """Build pages that are gone, while whoever asks for one waits; once, if the guide has an error."""
        if self._lost == found:
            return
        self._lost = self._stamp = found
        try:
            self._shown = self._made(found)
        except Exception as error:
            self._tell(f"{error}\nThe pages are gone from the cache, and come back when this is mended.")
        else:
            self._lost = ""
            self._tell("The pages were gone from the cache: they are built again.")

    def _made(self, found: str) -> Shown:
        """Pages of a stamp: from the cache, or built, under another name until they are whole."""
        home = self._cache / found
        shown = _whole(home)
        if shown is None:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._cache.chmod(0o700)  # keys of questions are beside the pages
            scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=self._cache))
            try:
                (scratch / "pages").mkdir()
                held = self._build(self.folder, scratch / "pages")
                (scratch / "guide.json").write_text(json.dumps(held), encoding="utf-8")
                if home.exists() and _whole(home) is None:  # what is left of pages that somebody deleted
                    self._remove(home)
                with contextlib.suppress(OSError):  # another server was faster: its pages are the same
                    scratch.rename(home)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            shown = read(home)
        self._tidy(home)
        return shown

    def _newest(self) -> Shown | None:
        try:
            homes = sorted(self._cache.iterdir(), key=lambda home: home.stat().st_mtime, reverse=True)
        except OSError:
            return None
        built = (home for home in homes if not home.name.startswith("."))
        return next((shown for home in built if (shown := _whole(home)) is not None), None)

    def _tidy(self, home: Path) -> None:
        _touch(home)
        with contextlib.suppress(OSError):
            for other in self._cache.iterdir():
                if other != home and time.time() - other.stat().st_mtime > OLD:
                    self._remove(other)

    def _remove(self, home: Path) -> None:
        """Remove pages; under another name first, so that nobody takes half of them for whole."""
        with contextlib.suppress(OSError):
            scratch = Path(tempfile.mkdtemp(prefix=".gone-", dir=self._cache))
            try:
                home.rename(scratch / home.name)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


def _touch(home: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(home)


def _whole(home: Path) -> Shown | None:
    """What was built into a folder of the cache; None if it isn't there, or only partly."""
    if not (home / "pages" / FRONT).is_file():
        return None
    try:
        return read(home)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read(home: Path) -> Shown:
    """What was built into a folder of the cache."""
    held = json.loads((home / "guide.json").read_text(encoding="utf-8"))
    return Shown(
        pages=home / "pages",
        id=held["id"],
        title=held["title"],
        keys=held["keys"],
        decks={deck: [(card, rev) for card, rev in cards] for deck, cards in held["decks"].items()},
        activities=held["activities"],
    )


def glance(folder: Path) -> list[tuple[str, int, int]]:
    """Name, time and size of each file of a guide: while they are the same, so are the contents."""
    found = []
    for path in _files(folder):
        with contextlib.suppress(OSError):  # an editor's file, gone in the meantime
            status = path.stat()
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return found


def stamp(folder: Path) -> str:
    """Changes whenever the content of a file of the guide does, or what pages are made by."""
    return _contents(folder, library())[:24]


@lru_cache(maxsize=1)
def library() -> str:
    """What pages are made by: all of headwise, from which outputs and numbers come, as it was when this began
    to run; and the versions of the packages that have a say in them."""
    versions = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    return _contents(Path(headwise.__file__).parent, "\n".join([sys.version, *versions]))


def _contents(folder: Path, first: str) -> str:
    digest = hashlib.sha256(first.encode())
    for path in _files(folder):
        with contextlib.suppress(OSError):
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            digest.update(f"{len(name)} {name} {len(content)}\n".encode(errors="surrogateescape"))
            digest.update(content)
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
