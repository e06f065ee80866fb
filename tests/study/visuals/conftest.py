"""Chromium, and a site of all visuals: each made once."""

import os
import shutil

import pytest
from visual_page import Opened, Site

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "the tests of the visuals need Chromium: apt-get install chromium (or set CHROMIUM to its path)"


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(INSTALL)
        pytest.skip(INSTALL)
    with sync_playwright() as playwright:
        root = getattr(os, "geteuid", lambda: 1)() == 0  # Chromium's sandbox refuses to run as root
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if root else [])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def visual_site():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def show(chromium, visual_site):
    """Open a visual; whatever it did wrong fails the test."""
    opened = []

    def open_visual(name, **options):
        opened.append(Opened(chromium, visual_site, name, **options))
        return opened[-1]

    yield open_visual
    for one in opened:
        one.close()
