"""What all tests share: property tests that draw the same examples every time, and one Chromium.

HYPOTHESIS_PROFILE=random draws new ones in each run, and HEADWISE_EXAMPLES=20 draws twenty times as many
(tests of the kernels only).
"""

import os
import shutil

import pytest
from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "tests in a browser need Chromium: apt-get install chromium (or set CHROMIUM to its path)"


@pytest.fixture
def without_gradients():
    import torch

    with torch.no_grad():
        yield


@pytest.fixture
def products(monkeypatch):
    """As if oneDNN's float32 products were faster here at any size, from two rows on: the shapes of those
    that it has computed."""
    import torch

    from headwise.multihead import projections

    if projections._OPERATION is None or not torch.backends.mkldnn.is_available():
        pytest.skip("torch has no oneDNN here")
    product, shapes = projections._multiply, []

    def counted(x, weight, bias=None):
        shapes.append((tuple(x.shape), tuple(weight.shape)))
        return product(x, weight, bias)

    monkeypatch.setattr(projections, "faster_from", lambda: 1)
    monkeypatch.setattr(projections, "_LEAST_ROWS", 2)
    monkeypatch.setattr(projections, "_multiply", counted)
    return shapes


@pytest.fixture(scope="session")
def chromium():
    """Chromium, started once: Playwright refuses to run twice in one process."""
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
