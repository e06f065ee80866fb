"""Speech: a tiny run on tones that learns, the recipe's determinism, and what a trained model hears."""

import dataclasses
import random
import shutil

import pytest
import torch
from tones import RATE, TINY, tone

from headwise.applications.data_sounds import Recording
from headwise.applications.errors import DataError
from headwise.applications.joined_sounds import Disturbance, blank_out, join, strings_of
from headwise.applications.running import train_application
from headwise.applications.sound import write_wav
from headwise.applications.speech import APPLICATION, transcribe
from headwise.applications.speech_model import hear
from headwise.applications.speech_trained import held_out_strings, token_errors
from headwise.training import RunError, SettingError, read_config

jiwer = pytest.importorskip("jiwer")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tones")
    chance = random.Random(7)
    for digit in range(5):
        for take in range(23):
            write_wav(folder / f"{digit}_fork_{take}.wav", tone(digit, chance), RATE)
    return folder


@pytest.fixture(scope="module")
def run(recordings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech") / "run"
    train_application(APPLICATION, folder, [recordings], changes=TINY, show=False)
    return folder


def test_a_tiny_run_hears_tones_far_better_than_chance(run):
    found = APPLICATION.open(run).evaluate("test", None, {"limit": 60})
    assert found.examples == 60
    assert found.baselines == {
        "nothing heard": {"token_error": 1.0},
        "commonest symbol": {"accuracy": 0.2},
    }
    assert found.figures["accuracy"] > 0.5
    assert found.figures["token_error"] < 0.6
    assert found.figures["token_error_low"] <= found.figures["token_error"]
    assert found.figures["token_error"] <= found.figures["token_error_high"]
    again = APPLICATION.open(run).evaluate("test", None, {"limit": 60})
    assert again.figures == found.figures
    assert APPLICATION.open(run).evaluate("val", None, {"limit": 3}).examples == 3
    with pytest.raises(ValueError, match="no split 'exam'"):
        APPLICATION.open(run).evaluate("exam", None, {})


def test_both_decoders_write(run):
    found = APPLICATION.open(run).evaluate("test", None, {"limit": 11, "decoder": "attention", "beam": 2})
    assert found.figures["token_error"] < 0.7
    assert found.notes[0].startswith("decoder attention; ")
    with pytest.raises(ValueError, match="choose ctc or attention"):
        APPLICATION.open(run).evaluate("test", None, {"limit": 11, "decoder": "guess"})


def test_a_run_says_what_it_was_made_of(run, recordings):
    config = read_config(run)
    assert config["application"] == "speech"
    assert config["symbols"] == list("01234")
    sound = config["sound"]
    assert (sound["rate"], sound["bands"]) == (RATE, 16)
    assert {name: len(numbers) for name, numbers in sound["statistics"].items()} == {
        "mean": 16,
        "deviation": 16,
    }
    assert config["data"]["paths"] == [str(recordings)]
    assert [config["data"][split]["recordings"] for split in ("train", "valid", "test")] == [75, 15, 25]


def test_files_are_transcribed_whatever_their_rate(run, recordings, tmp_path):
    found = transcribe(run, [recordings / "3_fork_0.wav", recordings / "1_fork_2.wav"])
    assert [one.notes for one in found] == [(), ()]
    assert found[0].seconds == pytest.approx(0.25, abs=0.06)
    assert any(one.text == digit for one, digit in zip(found, "31", strict=True))
    assert all(one.text == " ".join(one.symbols) for one in found)
    write_wav(tmp_path / "high.wav", tone(3, random.Random(5), 8000), 8000)
    high = transcribe(run, [tmp_path / "high.wav"])[0]
    assert high.notes == ("resampled from 8,000 to 2,000 samples a second",)
    write_wav(tmp_path / "short.wav", torch.zeros(1), RATE)
    assert transcribe(run, [tmp_path / "short.wav"])[0].seconds == 1 / RATE
    write_wav(tmp_path / "none.wav", torch.zeros(0), RATE)
    with pytest.raises(DataError, match="no sound"):
        transcribe(run, [tmp_path / "none.wav"])


def task(recordings, **changes):
    settings = dataclasses.replace(
        APPLICATION.settings(), layers=1, d_model=8, d_ff=8, heads=2, max_frames=300, **changes
    )
    return APPLICATION.task([recordings], settings, None, lambda line: None)


def test_batches_depend_on_seed_and_epoch_alone_and_may_start_in_the_middle(recordings):
    one, other = task(recordings), task(recordings)
    first = list(one.batches("train", 3, 5))
    assert len(first) > 3
    for a, b in zip(first[2:], other.batches("train", 3, 5).starting_at(2), strict=True):
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)
    changed = next(iter(one.batches("train", 4, 5)))
    assert changed["features"].shape != first[0]["features"].shape or not torch.equal(
        changed["features"], first[0]["features"]
    )
    assert sum(int(batch["lengths"].sum()) for batch in first) == 75  # each recording once


def test_the_loss_adds_up_over_parts_of_a_batch(recordings):
    whole = task(recordings)
    whole.model.double().eval()
    batch = next(iter(whole.batches("train", 0, 0)))
    batch["features"] = batch["features"].double()
    loss, count, sums = whole.loss(batch)
    rows = range(len(batch["frames"]))
    parts = [whole.loss({name: one[row : row + 1] for name, one in batch.items()}) for row in rows]
    assert count == sum(part[1] for part in parts)
    torch.testing.assert_close(sums["ctc"], sum(part[2]["ctc"] for part in parts), rtol=1e-5, atol=1e-5)
    assert torch.isfinite(loss)


@pytest.mark.parametrize("chosen", [1, 2])
def test_beginnings_and_ends_are_no_symbols(recordings, chosen):
    """A model that has learned little may take them for the likeliest: nothing was heard then."""
    untrained = task(recordings)
    model = untrained.model.eval()
    batch = next(iter(untrained.batches("train", 0, 0)))
    with torch.no_grad():
        model.speech.ctc.weight.zero_()
        model.speech.ctc.bias.zero_()
        model.speech.ctc.bias[chosen] = 1.0
    assert set(map(tuple, hear(model, batch["features"], batch["frames"]))) == {()}


def test_without_a_decoder_ctc_is_all(recordings):
    alone = task(recordings, decoder_layers=0, ctc_weight=1.0)
    loss, _, sums = alone.loss(next(iter(alone.batches("train", 0, 0))))
    assert set(sums) == {"ctc"}
    assert torch.equal(loss.detach(), sums["ctc"])
    alone.model.eval()
    assert set(alone.validate()) == {"token_error", "ctc_error"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ctc_weight": 0.0}, "ctc_weight is 0.0"),
        ({"ctc_weight": 1.0}, "leaves the decoder untrained"),
        ({"decoder_layers": 0, "decoder": "attention"}, "needs decoder_layers"),
        ({"gap": -1.0}, "gap is -1.0"),
        ({"joined": 0}, "joined is 0"),
    ],
)
def test_impossible_settings_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(APPLICATION.settings(), **change)


def test_sizes_that_make_no_model_and_other_runs_are_refused(recordings, run, tmp_path):
    with pytest.raises(SettingError, match="the settings make no model"):
        train_application(APPLICATION, tmp_path / "r", [recordings], changes=["heads=7"], show=False)
    other = tmp_path / "run"
    shutil.copytree(run, other)
    config = other / "config.json"
    config.write_text(config.read_text().replace('"application": "speech"', '"application": "vision"'))
    with pytest.raises(RunError, match="'vision', not 'speech'"):
        APPLICATION.open(other)
    (tmp_path / "more").mkdir()
    for take in (0, 5, 8):
        write_wav(tmp_path / "more" / f"9_x_{take}.wav", torch.ones(300), RATE)
    with pytest.raises(DataError, match="the transcripts have 9, and the model knows 0 1 2 3 4"):
        APPLICATION.open(run).evaluate("test", [tmp_path / "more"], {})


def test_about_as_many_recordings_stand_alone_as_in_strings_of_each_length():
    strings = strings_of(30_000, 5, random.Random(3))
    for length in range(1, 6):
        share = sum(length for string in strings if len(string) == length) / 30_000
        assert share == pytest.approx(1 / 5, abs=0.02)


def test_strings_take_each_recording_once():
    strings = strings_of(97, 5, random.Random(3))
    assert sorted(one for string in strings for one in string) == list(range(97))
    assert {len(string) for string in strings} == {1, 2, 3, 4, 5}
    assert strings_of(7, 1, random.Random(3)) != [[one] for one in range(7)]


def test_joined_sounds_keep_every_sample_and_silences_are_short():
    parts = [Recording(f"{size}", torch.full((size,), float(size)), ("1",)) for size in (2, 3, 5)]
    plain = join(parts, 100, random.Random(1), gap=0)
    assert plain.tolist() == [2.0] * 2 + [3.0] * 3 + [5.0] * 5
    apart = join(parts, 100, random.Random(1), gap=0.2)
    assert apart[apart != 0].tolist() == plain.tolist()
    assert 0 < int((apart == 0).sum()) <= 40
    changed = join(parts, 100, random.Random(1), gap=0, disturbance=Disturbance(speed=0.5, gain=6))
    assert 10 / 1.5 - 2 <= len(changed) <= 10 / 0.5 + 2


def test_blanking_out_leaves_most_of_a_sound():
    for seed in range(20):
        features = torch.ones(41, 23)
        blank_out(features, 31, Disturbance(bands=3, frames=100), random.Random(seed))
        assert bool((features[31:].sum(1) >= 23 - 6).all())  # no blanked frames beyond the length
        assert int((features.sum(1) == 0).sum()) <= 2 * (31 // 5)
        assert int((features.sum(0) == 0).sum()) <= 6
    untouched = torch.ones(7, 5)
    blank_out(untouched, 7, Disturbance(bands=0, frames=0), random.Random(0))
    assert bool((untouched == 1).all())


@pytest.mark.parametrize("change", [{"speed": 1.0}, {"gain": -1.0}, {"bands": -1}])
def test_impossible_disturbances_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        Disturbance(**change)


def test_token_errors_are_counted_by_hand():
    texts, heard = ("123", "12", "1", "a b"), ("13", "", "21", "a b")
    assert token_errors([list(one) for one in texts], [list(one) for one in heard]) == [1, 2, 1, 0]


def test_held_out_strings_are_the_same_every_time():
    parts = [Recording(str(number), torch.zeros(1), (str(number),)) for number in range(11)]
    assert held_out_strings(parts, 5, 17) == held_out_strings(parts, 5, 17)
    assert held_out_strings(parts, 1, 17) == [[one] for one in parts]
