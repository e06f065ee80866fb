"""Files of a built site, and nothing beside it."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".xml": "application/xml",
}


def find(root: Path, path: str) -> Path | None:
    """The file that a path of a URL (decoded, below the site's root, no slash in front) names, index.html for
    a folder; None if there is none that may be read.

    Refused, whatever is there: .., names that begin with a dot, backslashes, colons, control characters, and
    links that lead out of the site.
    """
    parts = path.split("/")
    if parts[-1] == "":
        parts[-1] = "index.html"
    if any(not _plain(part) for part in parts):
        return None
    file = root.joinpath(*parts)
    try:
        real = file.resolve(strict=True)
        inside = real.is_relative_to(root.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):  # missing, too long, a circle of links
        return None
    return real if inside and real.is_file() else None


def is_folder(root: Path, path: str) -> bool:
    """Does a path without a slash at its end name a folder with a page?"""
    return bool(path) and not path.endswith("/") and find(root, f"{path}/") is not None


def _plain(part: str) -> bool:
    return (
        0 < len(part) <= 200
        and not part.startswith(".")
        and part.isprintable()
        and not set(part) & set('\\:*?"<>|')
        and not part.endswith((" ", "."))
    )


def media_type(file: Path) -> str:
    """What a file is, by its name: our own table, since a machine's may say anything."""
    known = TYPES.get(file.suffix.lower())
    return known or mimetypes.guess_type(file.name, strict=True)[0] or "application/octet-stream"


def tag(file: Path) -> str:
    """Changes whenever the file does."""
    found = os.stat(file)
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
