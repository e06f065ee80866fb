"""Draw the README's picture: the report on the sample text, as Chromium shows it.

    python docs/make_pictures.py

Needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from headwise.cli.look import look, open_model
from headwise.cli.report import render
from headwise.cli.text import read_text

PICTURE = Path(__file__).parent / "images" / "report.png"
HEAD = (2, 9)  # looks for other places of the same token
PAIR = (83, 50)  # "The lamp was afraid" looks back at "had broken the lamp"


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("this needs Chromium: apt-get install chromium (or set CHROMIUM to its path)")
    text = read_text(None)
    model, name = open_model("minilm")
    page = render(look(model, name, text.content), text=text.content, origin=text.origin, start=HEAD)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        root = getattr(os, "geteuid", lambda: 1)() == 0  # Chromium's sandbox refuses to run as root
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if root else [])
        view = browser.new_page(viewport={"width": 1320, "height": 1010}, color_scheme="light")
        view.goto(file.as_uri())
        view.wait_for_selector("html[data-ready=yes]")
        view.evaluate("([query, key]) => { pointAt(query, key, false); showToken(query); }", list(PAIR))
        PICTURE.parent.mkdir(exist_ok=True)
        view.screenshot(path=PICTURE)
        browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
