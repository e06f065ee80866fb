"""Chromium, and a site of all visuals: each made once."""

import pytest
from visual_page import Opened, Site


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
