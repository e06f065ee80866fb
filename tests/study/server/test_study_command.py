"""`headwise study` from the outside: where it listens, what it says, how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from headwise.cli import study_serve
from headwise.cli.errors import UserError
from headwise.study.errors import GuideError
from headwise.study.progress import Store, add_mark
from headwise.study.server.run import PORT, listen


@pytest.fixture
def environment(tmp_path):
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {
        **kept,
        "HEADWISE_STUDY_DATA": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
    }


def command(*words):
    return [sys.executable, "-c", "from headwise_command import run; run()", "study", *map(str, words)]


def run(environment, *words, **more):
    return subprocess.run(
        command(*words), env=environment, capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(kept_guide, environment, ending, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = command("--guide", kept_guide.folder, "--port", port, "--no-browser", "--profile", "ada")
        with subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program:
            said = []
            while "Ctrl+C" not in "".join(said):
                line = program.stdout.readline()
                assert line, program.stderr.read()
                said.append(line)
            text = "".join(said)
            assert f"Port {port} is in use by another program" in text
            address = re.search(r"http://127\.0\.0\.1:(\d+)/g/small/", text)[0]
            with urllib.request.urlopen(address) as answer:
                assert b"A small guide" in answer.read()
            assert str(tmp_path / "data" / "ada.sqlite3") in text
            program.send_signal(ending)
            rest, errors = program.communicate(timeout=20)
    assert errors == ""
    if ending == signal.SIGINT:
        assert "Stopped. All progress is kept." in rest
        assert program.returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "70000"], "--port 70000: a port is a whole number from 1 to 65535, or 0"),
        (["--port", "abc"], "--port abc: a port is a whole number"),
        (["--port", "-1"], "--port -1: a port is a whole number"),
        (["--port", "²"], "--port ²: a port is a whole number"),
        (["--port", "6000"], "--port 6000: browsers open no page at this port"),
        (["--port", "25"], "--port 25: browsers open no page at this port"),
        (["--guide", "{tmp}"], "{tmp}/guide.toml: a guide needs this file, and there is none"),
        (["--guide", "{tmp}/nowhere"], "{tmp}/nowhere: there is no such folder"),
        (["--guide", "{guide}/guide.toml"], "{guide}/guide.toml: this is a file, and a guide is a folder"),
        (["--profile", "../x", "--no-browser", "--guide", "{guide}"], "profile '../x'"),
        (["--port", "5", "export"], "belong to `headwise study`"),
        (["export", "--profile", "nobody"], "has no progress yet"),
        (["import", "{tmp}/missing.json"], "can't be read"),
        (["erase", "nobody", "--yes"], "has no progress"),
        (["erase", "../x"], "profile '../x'"),
        (["anki", "{tmp}"], "guide.toml"),
        (["anki", "{guide}", "-o", "cards.zip"], "end in .apkg"),
    ],
)
def test_mistakes_are_told_in_one_line(kept_guide, environment, tmp_path, words, says):
    filled = [word.format(tmp=tmp_path, guide=kept_guide.folder) for word in words]
    done = run(environment, *filled)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("headwise: ")
    assert says.format(tmp=tmp_path, guide=kept_guide.folder) in line


def test_pages_that_cannot_be_kept_are_told_in_one_line(kept_guide, environment, tmp_path):
    (tmp_path / "cache").write_text("a file, and no folder")
    done = run(environment, "--guide", kept_guide.folder, "--no-browser", "--port", "0")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"headwise: pages are built in {tmp_path / 'cache' / 'headwise' / 'study'}, and ")
    assert line.endswith(
        "can't be written: Not a directory. Make room there, and give yourself the right to write"
    )


def test_a_guide_with_faults_is_not_served_and_the_command_that_tells_all_is_named(
    environment, guide, tmp_path
):
    quiz = guide.folder / "activities" / "14-first.quiz.toml"
    quiz.write_text(quiz.read_text(encoding="utf-8").replace("prompt =", "promt ="), encoding="utf-8")
    done = run(environment, "--guide", guide.folder, "--no-browser", "--port", "0")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"headwise: {quiz}:")
    assert line.endswith(f" more: headwise study check {guide.folder})")


def test_progress_goes_out_and_in_again(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_STUDY_DATA", environment["HEADWISE_STUDY_DATA"])
    from headwise.study.progress import progress_file

    store = Store(progress_file("ada"))
    add_mark(store, id="mark-00001", guide="small", activity="first", done=True, clock=0)
    store.close()
    out = tmp_path / "out.json"
    done = run(environment, "export", "--profile", "ada", "-o", out)
    assert done.stdout == f"{out}: 1 mark\n"
    printed = run(environment, "export", "--profile", "ada").stdout
    assert json.loads(printed)["marks"] == json.loads(out.read_text())["marks"]
    done = run(environment, "import", out, "--profile", "eve")
    eve = progress_file("eve")
    assert done.stdout.splitlines() == [
        f"{out}: read 1 mark",
        f"Profile 'eve' (new): added 1 mark; known already: nothing; refused: nothing. Its settings are now "
        f"those of the file. It is kept in {eve}",
    ]
    again = run(environment, "import", out, "--profile", "eve").stdout
    assert "Profile 'eve': added nothing; known already: 1 mark; refused: nothing." in again
    kept = eve.read_bytes()
    out.write_text(out.read_text()[:-20])
    done = run(environment, "import", out, "--profile", "eve")
    assert done.returncode == 2
    assert "nothing was changed" in done.stderr
    assert eve.read_bytes() == kept
    done = run(environment, "export", "--profile", "ada", "-o", tmp_path / "nowhere" / "out.json")
    assert done.returncode == 2
    assert "can't be written" in done.stderr


def test_a_profile_is_erased_when_it_is_agreed_to_and_others_stay(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_STUDY_DATA", environment["HEADWISE_STUDY_DATA"])
    from headwise.study.progress import kept, progress_file

    def marks(profile):
        store = Store(progress_file(profile))
        found = kept(store)["marks"]
        store.close()
        return found

    for profile in ("ada", "eve"):
        store = Store(progress_file(profile))
        add_mark(store, id="mark-00001", guide="small", activity="first", done=True, clock=0)
        store.close()
    done = run(environment, "erase", "ada", input="n\n")
    assert "holds 0 reviews, 0 answers, 1 mark, of all guides" in done.stdout
    assert "headwise study export --profile ada -o progress.json" in done.stdout
    assert done.stdout.endswith("Nothing was erased.\n")
    assert (done.returncode, marks("ada")) == (1, 1)
    done = run(environment, "erase", "ada", input="")
    assert (done.returncode, marks("ada")) == (2, 1)
    assert "headwise: nothing was erased: answer y, or write --yes" in done.stderr
    done = run(environment, "erase", "ada", input="y\n")
    assert (done.returncode, marks("ada"), marks("eve")) == (0, 0, 1)
    done = run(environment, "erase", "eve", "--yes")
    assert done.stdout == "Erased from the profile 'eve': 0 reviews, 0 answers, 1 mark.\n"
    assert (marks("ada"), marks("eve")) == (0, 0)


FAULTS = {
    "cut": lambda text: text[:-20],
    "not JSON": lambda _: "dear diary",
    "no export": lambda _: "{}",
    "an entry": lambda text: text.replace('"first"', '"../first"'),
    "an undo of nothing": lambda text: text.replace(
        '"undos": []',
        '"undos": [{"id": "undo-00001", "undoes": "review-0001", "at": "2026-01-01T00:00:00.000Z"}]',
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_with_a_fault_makes_no_profile(tmp_path, monkeypatch, fault, capsys):
    from headwise.cli.errors import UserError
    from headwise.cli.study_transfer import read_progress, write_progress
    from headwise.study.progress import progress_file

    monkeypatch.setenv("HEADWISE_STUDY_DATA", str(tmp_path / "data"))
    store = Store(progress_file("ada"))
    add_mark(store, id="mark-00001", guide="small", activity="first", done=True, clock=0)
    store.close()
    out = tmp_path / "out.json"
    write_progress(out, "ada")
    whole = out.read_text()
    out.write_text(FAULTS[fault](whole))
    assert out.read_text() != whole
    with pytest.raises(UserError, match=r"(?i)nothing was changed.* The profile 'eve' was not made"):
        read_progress(out, "eve")
    assert sorted(path.name for path in (tmp_path / "data").iterdir() if "eve" in path.name) == []
    with pytest.raises(UserError, match=r"(?i)nothing was changed"):
        read_progress(out, "ada")
    out.write_text(whole)
    read_progress(out, "eve")
    assert "added 1 mark" in capsys.readouterr().out


def test_the_usual_port_is_taken_if_it_is_free_and_another_if_not():
    said = []
    try:
        first = listen(None, said.append)
    except OSError:
        pytest.skip("no ports here")
    second = listen(first.getsockname()[1], said.append)
    assert second.getsockname()[1] != first.getsockname()[1]
    assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
    assert f"on port {second.getsockname()[1]} instead" in said[-1]
    assert first.getsockname()[1] == PORT or said
    first.close()
    second.close()


def test_an_error_of_no_file_is_one_line_too(monkeypatch, tmp_path):
    """As that no process can be started for the code of guides: it is no guide's own."""

    def fail(folders, **more):
        raise GuideError("the process for the guide's code can't be started: no room")

    monkeypatch.setattr(study_serve, "run", fail)
    (tmp_path / "guide.toml").write_text("")
    with pytest.raises(UserError, match=r"^the process for the guide's code can't be started: no room$"):
        study_serve.serve([tmp_path], port=None, browser=False, profile="default")
