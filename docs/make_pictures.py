"""Draw the pages of `headwise see` as Chromium shows them: the report on the sample text, for the README, or
the page of a trained run, for docs/see.md.

    python docs/make_pictures.py
    python docs/make_pictures.py runs/en-de "Two men are walking along the beach."

Needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from playwright.sync_api import sync_playwright

from headwise.cli.look import look, open_model
from headwise.cli.report import render
from headwise.cli.runs.report import render as render_run
from headwise.cli.see_run import Options, look_at
from headwise.cli.text import read_text

PICTURE = Path(__file__).parent / "images" / "report.png"
RUN_PICTURE = PICTURE.with_name("alignment.png")
HEAD = (2, 9)  # looks for other places of the same token
PAIR = (83, 50)  # "The lamp was afraid" looks back at "had broken the lamp"


def main() -> None:
    if len(sys.argv) > 1:
        draw(RUN_PICTURE, render_run(look_at(sys.argv[1:], Options())), height=1160)
        return
    text = read_text(None)
    model, name = open_model("minilm")
    page = render(look(model, name, text.content), text=text.content, origin=text.origin, start=HEAD)
    draw(PICTURE, page, "([query, key]) => { pointAt(query, key, false); showToken(query); }", list(PAIR))


def draw(
    picture: Path,
    page: str,
    script: str | None = None,
    argument: list[int] | None = None,
    *,
    height: int = 840,
) -> None:
    """Write a page's upper part as a PNG, after a script has run in it."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("this needs Chromium: apt-get install chromium (or set CHROMIUM to its path)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        root = getattr(os, "geteuid", lambda: 1)() == 0  # Chromium's sandbox refuses to run as root
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if root else [])
        view = browser.new_page(viewport={"width": 1240, "height": height}, color_scheme="light")
        view.goto(file.as_uri())
        view.wait_for_selector("html[data-ready=yes]")
        if script is not None:
            view.evaluate(script, argument)
        picture.parent.mkdir(exist_ok=True)
        picture.write_bytes(squeeze(view.screenshot()))
        browser.close()
    print(f"{picture}: {picture.stat().st_size // 1000} kB")


def squeeze(png: bytes) -> bytes:
    """The same pixels, compressed as far as it goes: a PNG is a signature, then chunks of length, name,
    data and checksum; the pixels are one zlib stream cut over the IDAT chunks."""
    chunks, at = [], 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    pixels = zlib.compress(zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT")), 9)
    kept = [chunk for chunk in chunks if chunk[0] == b"IHDR"] + [(b"IDAT", pixels), (b"IEND", b"")]
    return png[:8] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in kept
    )


if __name__ == "__main__":
    main()
