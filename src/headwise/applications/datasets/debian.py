"""Debian's packages and lists by apt-get, without root and without touching the system's own lists."""

from __future__ import annotations

import os
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.clients import (
    Printed,
    beside,
    cache_folder,
    made_folder,
    reason_in,
    run_client,
)
from headwise.applications.errors import DataError

# The system's configuration holds (its mirrors, proxies and keys), but for what is named here. Images of
# Docker ask for no translations at all, so that list is cleared before English is asked for; hooks that run
# after an update are for the system's lists alone.
CONFIGURATION = """\
#clear Acquire::Languages;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages {{ "en"; }};
Acquire::GzipIndexes "false";
Acquire::Retries "1";
Dir::State::lists "{folder}/lists/";
Dir::Cache "{folder}/cache/";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
TARGETS = "$(CREATED_BY)\t$(ORIGIN)\t$(COMPONENT)\t$(CODENAME)\t$(FILENAME)"
BY_HAND = (
    "it comes with Debian and systems like it; the .deb of {what} may be had from https://packages.debian.org"
)


class Debian:
    """apt-get with lists and downloads of its own, kept in the cache.

    Args:
        fresh: fetch again what is kept
    """

    def __init__(self, *, fresh: bool, say: Say) -> None:
        self.folder = made_folder(cache_folder() / "debian")
        self._fresh = fresh
        self._updated = False
        self._say = say
        if set('"{};\n') & set(str(self.folder)):
            raise DataError(
                f"apt can't use the cache {self.folder}: its path has signs with a meaning to apt"
            )
        for name in ("lists/partial", "cache/archives/partial"):
            made_folder(self.folder / name)
        self._configuration = self.folder / "apt.conf"
        self._configuration.write_text(CONFIGURATION.format(folder=self.folder), encoding="utf-8")

    def _apt(self, *words: str, what: str, cwd: Path | None = None) -> Printed:
        command = ["apt-get", "-q", "-c", str(self._configuration), *words]
        return run_client(command, by_hand=BY_HAND.format(what=what), cwd=cwd)

    def update(self, what: str) -> None:
        """Fetch the lists, once.

        Raises:
            DataError: no client, no network. (`apt-get update` itself is content where it got nothing.)
        """
        if not self._updated:
            self._say("fetching Debian's lists of packages (16 MB)")
            printed = self._apt("update", what=what)
            if not any((self.folder / "lists").glob("*Packages")):
                raise DataError(
                    f"`apt-get update` brought no lists ({reason_in(printed.err)}): is the network there? "
                    "Nothing was written"
                )
            self._updated = True

    def unpack(self, name: str, into: Path) -> str:
        """Unpack a package; nothing of it is installed or run. Returns the name of its file. Links
        that lead out of the folder are left out.

        Raises:
            DataError: no client, no network, no such package.
        """
        deb = self._deb(name)
        run_client(["dpkg-deb", "-x", str(deb), str(into)], by_hand=BY_HAND.format(what=name))
        _close_off(into)
        return deb.name.replace("%3a", ":")

    def _deb(self, name: str) -> Path:
        kept = sorted(self.folder.glob(f"{name}_*.deb"))
        if kept and not self._fresh:
            return kept[-1]
        self.update(name)
        with beside(self.folder / name) as folder:
            self._say(f"fetching {name}")
            self._apt("download", name, what=name, cwd=folder)
            found = sorted(folder.glob("*.deb"))
            if not found:
                raise DataError(f"`apt-get download {name}` brought no package")
            for old in kept:
                old.unlink()
            return found[0].rename(self.folder / found[0].name)

    def lists(self) -> tuple[Path, Path]:
        """The main list of packages, and that of their English descriptions.

        Raises:
            DataError: no client, no network, another distribution.
        """
        what = "Debian's package lists"
        if self._fresh:
            self.update(what)
        found = self._lists(what)
        if len(found) < 2:
            self.update(what)
            found = self._lists(what)
        if len(found) < 2:
            raise DataError(
                "apt-get has no main list of Debian packages with English descriptions: this needs Debian"
            )
        return found["Packages"], found["Translations"]

    def _lists(self, what: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for line in self._apt("indextargets", "--format", TARGETS, what=what).out.splitlines():
            kind, origin, component, codename, file = line.split("\t")
            main = origin == "Debian" and component == "main" and "-" not in codename
            if main and kind in ("Packages", "Translations") and Path(file).is_file():
                found.setdefault(kind, Path(file))
        return found


def _close_off(folder: Path) -> None:
    """Remove links that lead out of a folder: what is read there, or moved, is the package's own."""
    inside = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            one = Path(place, name)
            if one.is_symlink() and not one.resolve().is_relative_to(inside):
                one.unlink()
