"""The real model, the sample text seen by it, and a browser: each made once."""

import os
import shutil

import pytest
from tiny_runs import MAKE, inputs

from headwise.cli.look import look, open_model
from headwise.cli.report import render
from headwise.cli.text import read_text

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "the tests of the report need Chromium: apt-get install chromium (or set CHROMIUM to its path)"


@pytest.fixture(scope="session")
def minilm():
    model, _ = open_model("minilm")
    return model


@pytest.fixture(scope="session")
def sample():
    return read_text(None).content


@pytest.fixture(scope="session")
def seen(minilm, sample):
    return look(minilm, "all-MiniLM-L6-v2", sample)


@pytest.fixture(scope="session")
def long_text(sample):
    """Longer than the 512 tokens that the model takes at once."""
    return " ".join([sample] * 9)


@pytest.fixture(scope="session")
def long_seen(minilm, long_text):
    """Its first 512 tokens."""
    return look(minilm, "all-MiniLM-L6-v2", long_text)


@pytest.fixture(scope="session")
def report(seen, sample, tmp_path_factory):
    """The report on the sample text, as a file."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(seen, text=sample, origin="the sample text"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """A tiny run of an application by its name, trained when it is first asked for."""
    made = {}

    def run_of(name):
        if name not in made:
            pytest.importorskip("accelerate")
            made[name] = MAKE[name](tmp_path_factory.mktemp(name))
        return made[name]

    return run_of


@pytest.fixture(scope="session")
def tiny_inputs(tmp_path_factory):
    """What `headwise see` is given after the run of each application."""
    pytest.importorskip("PIL")
    return inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="session")
def browser():
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
