"""The real model, the sample text seen by it, and a browser: each made once."""

import pytest
from tiny_runs import MAKE, inputs

from headwise.cli.look import look, open_model
from headwise.cli.report import render
from headwise.cli.text import read_text


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
def browser(chromium):
    return chromium
