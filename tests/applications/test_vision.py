"""Vision: a tiny run that learns, the recipe's determinism, and what a trained model says."""

import dataclasses
import shutil

import pytest
import torch

from headwise.applications.augment_images import Augmentation, augment
from headwise.applications.data_images import ImageSet, load_images
from headwise.applications.errors import DataError
from headwise.applications.running import train_application
from headwise.applications.vision import APPLICATION, VisionSettings, classify, vision_config
from headwise.applications.vision_trained import confusions
from headwise.training import RunError, read_config

pytest.importorskip("sklearn")
Image = pytest.importorskip("PIL.Image")

TINY = (
    "layers=2",
    "d_model=48",
    "d_ff=96",
    "heads=4",
    "warmup=20",
    "steps=100",
    "validate_every=100",
    "rate=4e-3",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision") / "run"
    train_application(APPLICATION, folder, ["digits"], changes=TINY, show=False)
    return folder


def test_a_tiny_run_tells_digits_far_better_than_the_commonest_class(run):
    found = APPLICATION.open(run).evaluate("test", None, {})
    assert found.examples == 360
    assert found.baselines["commonest class"]["accuracy"] < 0.15
    assert found.figures["accuracy"] > 0.6
    assert found.figures["accuracy_low"] <= found.figures["accuracy"] <= found.figures["accuracy_high"]
    wrong = sum(one["output"] != one["reference"] for one in found.outputs)
    assert found.figures["accuracy"] == 1 - wrong / 360
    assert APPLICATION.open(run).evaluate("test", None, {"limit": 7}).examples == 7
    assert APPLICATION.open(run).evaluate("val", None, {}).examples == 143


def test_a_run_says_what_it_was_made_of(run):
    config = read_config(run)
    assert config["application"] == "vision"
    assert config["data"]["paths"] == ["digits"]
    assert config["classes"] == list("0123456789")
    assert (
        config["data"]["test"]["images"]
        + config["data"]["valid"]["images"]
        + config["data"]["train"]["images"]
        == 1797
    )


def test_files_of_any_size_are_classified(run, tmp_path):
    sets = load_images("digits")
    names = []
    for number in range(5):
        pixels = sets["train"].images[number, 0]
        image = Image.frombytes("L", (8, 8), bytes(pixels.reshape(-1).tolist()))
        names.append(tmp_path / f"{number}.png")
        image.resize((64, 64), Image.Resampling.BICUBIC).save(names[-1])
    found = classify(run, names)
    right = [
        guess.label == str(int(label)) for guess, label in zip(found, sets["train"].labels, strict=False)
    ]
    assert sum(right) >= 3
    for guess in found:
        shares = list(guess.probabilities.values())
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1, abs=1e-5)
        assert guess.notes == ("resized from 64 x 64 to 8 x 8 pixels",)
    classifier = APPLICATION.open(run)
    plain, inverted = classifier.read(names[0]), classifier.read(names[0], invert=True)
    assert torch.equal(plain.pixels, 255 - inverted.pixels)
    assert "exchanged" in inverted.notes[-1]


def task(**changes):
    settings = dataclasses.replace(APPLICATION.settings(), layers=1, d_model=8, d_ff=8, heads=2, **changes)
    return APPLICATION.task(["digits"], settings, None, lambda line: None)


def test_batches_depend_on_seed_and_epoch_alone_and_may_start_in_the_middle():
    one, other = task(), task()
    first = list(one.batches("train", 3, 5))
    later = list(other.batches("train", 3, 5).starting_at(2))
    for a, b in zip(first[2:], later, strict=True):
        assert torch.equal(a["images"], b["images"])
        assert torch.equal(a["labels"], b["labels"])
    assert not torch.equal(first[0]["images"], next(iter(one.batches("train", 4, 5)))["images"])
    assert not torch.equal(first[0]["images"], next(iter(one.batches("train", 3, 6)))["images"])
    assert sum(len(batch["labels"]) for batch in first) == len(one.sets["train"])


def test_validation_images_are_never_moved():
    images = task()
    [*batches] = images.batches("valid", 0, 0)
    assert torch.equal(torch.cat([one["labels"] for one in batches]), images.sets["valid"].labels)
    again = torch.cat([one["images"] for one in images.batches("valid", 1, 2)])
    assert torch.equal(torch.cat([one["images"] for one in batches]), again)


def test_no_augmentation_leaves_images_alone_and_a_shift_moves_them_by_so_many_pixels():
    images = torch.rand(3, 2, 5, 7)
    still = Augmentation(shift=0, degrees=0, shear=0, zoom=0).draw(3, 11)
    torch.testing.assert_close(augment(images, still), images)
    moved = still.clone()
    moved[:, 0, 2] = 2 * 2 / 7  # two of seven columns
    torch.testing.assert_close(augment(images, moved)[..., :5], images[..., 2:])
    drawn = Augmentation(shift=0.25, degrees=0, shear=0, zoom=0).draw(1000, 13)
    assert drawn[:, :, 2].abs().max() <= 0.5
    assert drawn[:, :, 2].abs().max() > 0.45


@pytest.mark.parametrize("change", [{"shift": -1}, {"zoom": 1.0}, {"degrees": float("inf")}])
def test_impossible_augmentations_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        Augmentation(**change)


def test_patches_fill_the_image_or_are_refused():
    def grid(height, width, **changes):
        images = ImageSet(torch.zeros(1, 1, height, width, dtype=torch.uint8), torch.tensor([0]), ("a", "b"))
        return vision_config(images, VisionSettings(**changes)).grid

    assert grid(8, 8) == (4, 4)
    assert grid(28, 28) == (7, 7)
    assert grid(12, 8, patch=2) == (6, 4)
    with pytest.raises(DataError, match="patches of 3 pixels don't fill images of 8 x 8"):
        grid(8, 8, patch=3)


def test_confusions_are_ranked():
    assert confusions([0, 1, 1, 1, 0], [0, 0, 0, 1, 1], ("a", "b")) == [("a", "b", 2), ("b", "a", 1)]


def test_a_run_of_another_application_is_refused(run, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run, other)
    config = other / "config.json"
    config.write_text(config.read_text().replace('"application": "vision"', '"application": "speech"'))
    with pytest.raises(RunError, match="'speech', not 'vision'"):
        APPLICATION.open(other)


def test_wrong_data_and_settings_are_refused(run, tmp_path):
    with pytest.raises(DataError, match="2 places for data"):
        APPLICATION.task(["digits", "digits"], APPLICATION.settings(), None, print)
    with pytest.raises(ValueError, match="the settings make no model"):
        train_application(APPLICATION, tmp_path / "r", ["digits"], changes=["heads=5"], show=False)
    with pytest.raises(ValueError, match=r"batch.*at least 1"):
        train_application(APPLICATION, tmp_path / "r", ["digits"], changes=["batch=0"], show=False)
    with pytest.raises(ValueError, match="no split 'exam'"):
        APPLICATION.open(run).evaluate("exam", None, {})
    assert not (tmp_path / "r").exists()
