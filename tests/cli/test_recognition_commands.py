"""headwise classify and transcribe: what they print, and mistakes in one line."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from headwise.applications.sound import write_wav
from headwise.applications.speech_trained import Transcriber
from headwise.cli.app import app

pytest.importorskip("sklearn")
pytest.importorskip("jiwer")
Image = pytest.importorskip("PIL.Image")

SIZES = ("layers=1", "d_model=8", "d_ff=8", "heads=2")
SMALL = (*SIZES, "warmup=1", "steps=2", "validate_every=2", "device=cpu")


def headwise(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def refused(*arguments):
    found = headwise(*arguments)
    assert found.exit_code == 2, found.output
    [line] = found.stderr.strip().splitlines()
    assert line.startswith("headwise: ")
    return line


def trained(name, data, folder, *changes):
    settings = [word for change in (*SMALL, *changes) for word in ("--set", change)]
    found = headwise("train", name, "--data", data, "--out", folder, *settings)
    assert found.exit_code == 0, found.output
    return folder


@pytest.fixture(scope="module")
def vision_run(tmp_path_factory):
    return trained("vision", "digits", tmp_path_factory.mktemp("vision") / "run")


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    chance = torch.Generator().manual_seed(2)
    for digit in (3, 5):
        for take in (0, 5, 8, 9):
            write_wav(folder / f"{digit}_x_{take}.wav", torch.randn(700, generator=chance) / 5, 2000)
    return folder


@pytest.fixture(scope="module")
def speech_run(sounds, tmp_path_factory):
    run = tmp_path_factory.mktemp("speech") / "run"
    return trained("speech", sounds, run, "bands=7", "decoder_layers=1")


@pytest.fixture(scope="module")
def run_without_decoder(sounds, tmp_path_factory):
    run = tmp_path_factory.mktemp("speech") / "run"
    return trained("speech", sounds, run, "bands=7", "decoder_layers=0", "ctc_weight=1.0")


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / "seven.png"
    Image.new("L", (17, 19), 200).save(file)
    return file


def test_images_are_classified_a_line_each(vision_run, picture):
    found = headwise("classify", vision_run, picture, picture, "--top", 2)
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert lines[0].startswith(f"{picture}: ")
    assert lines[0].count("%") == 2
    assert found.stderr.splitlines()[0] == f"{picture}: resized from 19 x 17 to 8 x 8 pixels"


def test_classes_as_json(vision_run, picture):
    found = headwise("classify", vision_run, picture, "--invert", "--json")
    [row] = json.loads(found.stdout)
    assert row["input"] == str(picture)
    assert row["output"] == next(iter(row["probabilities"]))
    assert len(row["probabilities"]) == 3
    assert "light and dark were exchanged" in row["notes"]


def test_sounds_are_transcribed_a_line_each(speech_run, tmp_path):
    for name, rate in (("a.wav", 2000), ("b.wav", 3000)):
        write_wav(tmp_path / name, torch.randn(900, generator=torch.Generator().manual_seed(3)) / 5, rate)
    alone = headwise("transcribe", speech_run, tmp_path / "a.wav", "--decoder", "attention", "--beam", 2)
    assert alone.exit_code == 0
    assert set(alone.stdout.split()) <= {"3", "5"}
    both = headwise("transcribe", speech_run, tmp_path / "a.wav", tmp_path / "b.wav")
    first, second = both.stdout.splitlines()
    assert first.startswith(f"{tmp_path / 'a.wav'}: ")
    assert second.startswith(f"{tmp_path / 'b.wav'}: ")
    said = [line for line in both.stderr.splitlines() if "nothing was heard" not in line]
    assert said == [f"{tmp_path / 'b.wav'}: resampled from 3,000 to 2,000 samples a second"]
    [row] = json.loads(headwise("transcribe", speech_run, tmp_path / "a.wav", "--json").stdout)
    assert row["seconds"] == 0.45
    assert row["input"] == str(tmp_path / "a.wav")


def test_that_nothing_was_heard_is_said(speech_run, tmp_path, monkeypatch):
    write_wav(tmp_path / "a.wav", torch.zeros(900), 2000)
    transcribe = Transcriber.transcribe
    monkeypatch.setattr(Transcriber, "transcribe", lambda *a, **k: replace(transcribe(*a, **k), text=""))
    found = headwise("transcribe", speech_run, tmp_path / "a.wav")
    assert found.stdout == "\n"
    assert found.stderr == f"{tmp_path / 'a.wav'}: nothing was heard in 0.5 s\n"


def test_evaluation_prints_figures_of_both(vision_run, speech_run):
    found = json.loads(headwise("evaluate", vision_run, "--limit", 11, "--json").stdout)
    assert found["examples"] == 11
    assert 0 <= found["figures"]["accuracy"] <= 1
    found = json.loads(headwise("evaluate", speech_run, "--limit", 7, "--json").stdout)
    assert found["examples"] == 7
    assert found["figures"]["token_error"] >= 0
    assert found["notes"][0].startswith("decoder ctc; ")


def test_evaluation_of_speech_reads_either_decoder(vision_run, speech_run, run_without_decoder):
    few = ("--limit", 7, "--json")
    other = json.loads(headwise("evaluate", speech_run, "--decoder", "attention", "--beam", 2, *few).stdout)
    assert other["notes"][0].startswith("decoder attention; ")
    same = json.loads(headwise("evaluate", speech_run, "--decoder", "ctc", *few).stdout)
    assert same["figures"] == json.loads(headwise("evaluate", speech_run, *few).stdout)["figures"]
    for command in (("evaluate",), ("transcribe", "nowhere.wav")):
        found = refused(command[0], run_without_decoder, *command[1:], "--decoder", "attention")
        assert "has no decoder (decoder_layers=0), so choose ctc" in found
    assert "--decoder guess: choose ctc or attention" in refused("evaluate", speech_run, "--decoder", "guess")
    assert "vision: there is no option decoder here" in refused("evaluate", vision_run, "--decoder", "ctc")


def test_mistakes_are_one_line(vision_run, speech_run, tmp_path, picture):
    assert "no file" in refused("classify", vision_run, tmp_path / "none.png")
    assert "doesn't classify images" in refused("classify", speech_run, picture)
    assert "doesn't transcribe sound" in refused("transcribe", vision_run, picture)
    assert "can't be read as wav" in refused("transcribe", speech_run, picture)
    assert "no run" in refused("classify", tmp_path / "none", picture)
    assert "--top 0" in refused("classify", vision_run, picture, "--top", 0)
    assert "--decoder guess: choose ctc or attention" in refused(
        "transcribe", speech_run, picture, "--decoder", "guess"
    )
    assert "--checkpoint newest" in refused("classify", vision_run, picture, "--checkpoint", "newest")
    (tmp_path / "cut.png").write_bytes(picture.read_bytes()[:40])
    assert "no image, or a damaged one" in refused("classify", vision_run, tmp_path / "cut.png")
