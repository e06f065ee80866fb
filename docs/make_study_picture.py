"""Draw a page of the study guide as Chromium shows it, for the README.

    python docs/make_study_picture.py

Needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from make_pictures import squeeze
from playwright.sync_api import sync_playwright

from headwise.study.content import load_guide
from headwise.study.site import build_site

HERE = Path(__file__).parent
GUIDE = HERE.parent / "guides" / "attention-is-all-you-need"
PICTURE = HERE / "images" / "study.png"
PAGE = "sentence-heads/"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing of each request."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, as long as it is needed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("this needs Chromium: apt-get install chromium (or set CHROMIUM to its path)")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        build_site(load_guide(GUIDE), site)
        root = getattr(os, "geteuid", lambda: 1)() == 0  # Chromium's sandbox refuses to run as root
        with served(site) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"] if root else []
            )
            view = browser.new_page(viewport={"width": 1240, "height": 960}, color_scheme="light")
            view.goto(address + PAGE)
            view.wait_for_selector("section.visual svg")
            view.wait_for_load_state("networkidle")
            PICTURE.write_bytes(squeeze(view.screenshot()))
            browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
