from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from toys import Digits, quick
from typer.testing import CliRunner

from headwise.cli.app import app
from headwise.training import train
from headwise.training.curves import draw_curves, panels

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves") / "run"
    train(Digits(), quick(), folder, show=False)
    return folder


def test_panels_are_the_figures_of_the_metrics():
    lines = [
        {"step": 1, "split": "train", "loss": 3.0, "rate": 0.1, "seconds": 1.0, "count": 9.0},
        {"step": 2, "split": "train", "loss": 2.0, "rate": 0.2, "seconds": 2.0, "count": 9.0},
        {"step": 2, "split": "valid", "loss": 2.5, "bleu": 30.0, "worse": None},
    ]
    found = panels(lines)
    assert list(found) == ["loss", "bleu", "rate"]
    assert found["loss"] == {"train": [(1, 3.0), (2, 2.0)], "valid": [(2, 2.5)]}
    assert found["bleu"] == {"valid": [(2, 30.0)]}


def test_curves_are_png_and_svg_and_the_same_every_time(run, tmp_path):
    files = draw_curves([run], tmp_path / "a")
    assert [file.name for file in files] == ["a.png", "a.svg"]
    assert files[0].read_bytes().startswith(PNG)
    assert ET.parse(files[1]).getroot().tag.endswith("svg")
    assert draw_curves([run], tmp_path / "b.png")[1].read_bytes() == files[1].read_bytes()


def test_runs_are_compared(run, tmp_path):
    svg = draw_curves([run, run.parent / ".." / run.parent.name / "run"], tmp_path / "a")[1].read_text()
    assert "<!-- run training -->" in svg
    assert "<!-- run validation -->" in svg


def test_what_cannot_be_drawn_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"has no metrics\.jsonl: is it the folder of a run"):
        draw_curves([tmp_path], tmp_path / "a")
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no figures yet"):
        draw_curves([tmp_path], tmp_path / "a")
    (tmp_path / "metrics.jsonl").write_text('nonsense\n{"step": 1, "split": "train", "loss": 1.0}\n')
    with pytest.raises(ValueError, match="line 1 is damaged"):
        draw_curves([tmp_path], tmp_path / "a")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "split": "train", "loss": 1.0}\n{"step": 2, "sp')
    assert draw_curves([tmp_path], tmp_path / "a")  # a last line cut off is no damage
    with pytest.raises(ValueError, match="no runs to draw"):
        draw_curves([], tmp_path / "a")


@pytest.mark.parametrize("where", ["default", "out", "missing", "nowhere"])
def test_the_command(run, tmp_path, where):
    arguments = {
        "default": [str(run)],
        "out": [str(run), "--out", str(tmp_path / "mine.png")],
        "missing": [str(tmp_path / "nothing")],
        "nowhere": [str(run), "--out", str(tmp_path / "nothing" / "mine")],
    }[where]
    done = CliRunner().invoke(app, ["curves", *arguments])
    if where in ("missing", "nowhere"):
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert f"there is no {'run' if where == 'missing' else 'folder'}" in line
        return
    assert done.exit_code == 0, done.stderr
    place = run / "curves" if where == "default" else tmp_path / "mine"
    assert done.stdout.split() == [str(place.with_suffix(suffix)) for suffix in (".png", ".svg")]
    assert place.with_suffix(".png").read_bytes().startswith(PNG)
