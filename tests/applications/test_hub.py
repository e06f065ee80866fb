"""Data of the Hugging Face hub: datasets made here stand for the hub's; there is no network in tests."""

import io
import json
import pickle
import sys

import pytest

from headwise.applications import DataError, find, train_application
from headwise.applications.data_images import load_images
from headwise.applications.datasets.hub import HubName, bring, is_hub, parse
from headwise.applications.questions import load_questions
from headwise.applications.records import load_records
from headwise.applications.text_files import load_split
from headwise.training.extras import MissingExtra

datasets = pytest.importorskip("datasets")
PIL = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def saved(folder, **splits):
    """Columns of each split as a dataset on the disk; its path as --data takes it."""
    made = {name: datasets.Dataset.from_dict(columns) for name, columns in splits.items()}
    datasets.DatasetDict(made).save_to_disk(str(folder))
    return f"hub:{folder}"


def brought(path, application):
    said = []
    folder = bring(path, application, said.append)
    return folder, said


def languages(count, **other):
    return {"en": [f"one {n}" for n in range(count)], "de": [f"eins {n}" for n in range(count)], **other}


def test_names():
    assert parse("hub:bentrevett/multi30k") == HubName("bentrevett/multi30k", False)
    assert parse("hub:abisee/cnn_dailymail:3.0.0") == HubName("abisee/cnn_dailymail", False, "3.0.0")
    assert parse("hub:a/b:c@refs/pr/1, text=body,summary = title") == HubName(
        "a/b", False, "c", "refs/pr/1", {"text": "body", "summary": "title"}
    )
    assert is_hub("hub:x")
    assert not is_hub("hubs")
    assert not is_hub("data/hub:x")
    for wrong in ("hub:", "hub:squad", "hub:a/b/c", "hub:a/b:", "hub:a/b,text", "hub:a/b,=x", "hub:a b/c"):
        with pytest.raises(DataError, match="OWNER/NAME"):
            parse(wrong)


def test_translation_with_a_column_for_each_language(tmp_path):
    path = saved(
        tmp_path / "a",
        train=languages(7, other=["x"] * 7),
        validation=languages(3, other=["x"] * 3),
        test=languages(2, other=["x"] * 2),
    )
    folder, said = brought(path, "translation")
    assert said == [f"{path}: train 7, val 3, test 2, in {folder}"]
    pairs = load_split([folder], "train", ("en", "de"))
    assert pairs.sources == [f"one {n}" for n in range(7)]
    assert pairs.targets == [f"eins {n}" for n in range(7)]
    assert {file.suffix for file in folder.iterdir()} == {".en", ".de", ".json"}
    assert not [one for one in folder.parent.iterdir() if one.name.startswith(".")]


def test_translation_in_one_column(tmp_path):
    rows = [{"en": "a\nb \u2028c", "de": "d"}, {"en": "left out", "de": ""}, {"en": "e", "de": " f "}]
    path = saved(tmp_path / "a", **{name: {"translation": rows} for name in ("train", "dev", "test")})
    folder, _ = brought(path, "translation")
    assert (folder / "val.en").read_text() == "a b c\ne\n"
    assert (folder / "val.de").read_text() == "d\nf\n"


def test_other_columns_are_named(tmp_path):
    columns = {"source": ["a b", "c"], "target": ["d", "e"]}
    path = saved(tmp_path / "a", train=columns, validation=columns, test=columns)
    with pytest.raises(DataError, match=r"no columns named by languages.*source, target.*en=NAME,de=NAME"):
        brought(path, "translation")
    folder, _ = brought(f"{path},en=source,de=target", "translation")
    assert load_split([folder], "test", ("en", "de")).targets == ["d", "e"]
    with pytest.raises(DataError, match="no column body, only source, target"):
        brought(f"{path},text=body", "summarization")


@pytest.mark.parametrize(("long", "short"), [("article", "highlights"), ("document", "summary")])
def test_summarization(tmp_path, long, short):
    columns = {long: ["Long\ntext.", "", "Other."], short: ["short", "gone", "o"], "id": ["1", "2", "3"]}
    folder, _ = brought(
        saved(tmp_path / "a", train=columns, validation=columns, test=columns), "summarization"
    )
    rows = load_records([folder], "val", ("text", "summary"), group="group")
    assert rows == [{"text": "Long text.", "summary": "short"}, {"text": "Other.", "summary": "o"}]


def squad(count):
    return {
        "id": [str(n) for n in range(count)],
        "title": [f"article {n // 2}" for n in range(count)],
        "context": [f"The answer is word{n}." for n in range(count)],
        "question": [f"What is number {n}?" for n in range(count)],
        "answers": [{"text": [f"word{n}"], "answer_start": [14]} for n in range(count)],
    }


def test_questions(tmp_path):
    columns = squad(5)
    columns["answers"][4] = {"text": [], "answer_start": []}  # as 2.0 writes that there is none
    folder, said = brought(saved(tmp_path / "a", train=columns, validation=squad(3)), "question-answering")
    assert "train 4, val 3" in said[0]
    assert "no test set" in said[1]
    found = load_questions([folder], "train")
    assert [(one.question, one.answers, one.group) for one in found] == [
        (f"What is number {n}?", (f"word{n}",), f"article {n // 2}") for n in range(4)
    ]


def test_what_has_no_splits_is_divided_by_its_texts(tmp_path):
    folder, _ = brought(saved(tmp_path / "a", train=squad(400)), "question-answering")
    titles = {
        split: {one.group for one in load_questions([folder], split)} for split in ("train", "val", "test")
    }
    assert sum(map(len, titles.values())) == 200  # no article is in two
    folder, _ = brought(saved(tmp_path / "b", train=languages(200), test=languages(3)), "translation")
    assert len(load_split([folder], "test", ("en", "de"))) == 3
    counts = [len(load_split([folder], split, ("en", "de"))) for split in ("train", "val")]
    assert sum(counts) == 200
    assert counts[1] > 0
    with pytest.raises(DataError, match="too small"):
        brought(saved(tmp_path / "c", train=languages(1)), "translation")


def image(shade, form="PNG"):
    held = io.BytesIO()
    PIL.new("L", (5, 7), shade).save(held, form)
    return {"bytes": held.getvalue(), "path": None}


def images(count, names, form="PNG"):
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    columns = {
        "image": [image(n, form) for n in range(count)],
        "label": [n % len(names) for n in range(count)],
    }
    return datasets.Dataset.from_dict(columns, features=features)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP"])
def test_images(tmp_path, form):
    names = ["cat/dog", "eel", ".."]
    made = {"train": images(30, names, form), "test": images(6, names, form)}
    datasets.DatasetDict(made).save_to_disk(str(tmp_path / "a"))
    folder, said = brought(f"hub:{tmp_path / 'a'}", "vision")
    assert "train 30, test 6" in said[0]
    found = load_images(folder)
    assert found["train"].classes == ("_", "cat_dog", "eel")
    assert {split: len(some) for split, some in found.items()} == {"train": 27, "valid": 3, "test": 6}
    assert found["test"].size == (7, 5)
    shades = found["test"].images[:, 0, 0, 0].tolist()
    assert sorted(shades) == [0, 1, 2, 3, 4, 5]


def test_images_without_a_test(tmp_path):
    images(30, ["a", "b"]).save_to_disk(str(tmp_path / "one"))  # a dataset without splits
    folder, _ = brought(f"hub:{tmp_path / 'one'}", "vision")
    assert len(load_images(folder)["test"]) == 6
    made = {"train": images(20, ["a", "b"]), "validation": images(4, ["a", "b"])}
    datasets.DatasetDict(made).save_to_disk(str(tmp_path / "two"))
    folder, _ = brought(f"hub:{tmp_path / 'two'}", "vision")
    assert len(load_images(folder)["test"]) == 4
    secret = images(20, ["a", "b"]).remove_columns("label").add_column("label", [-1] * 20)
    datasets.DatasetDict({"train": secret}).save_to_disk(str(tmp_path / "three"))
    with pytest.raises(DataError, match="row 0: it has no label"):
        brought(f"hub:{tmp_path / 'three'}", "vision")


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_files_of_common_forms(tmp_path, form):
    folder = tmp_path / "files"
    folder.mkdir()
    for split in ("train", "validation", "test"):
        rows = datasets.Dataset.from_dict(languages(4))
        {"json": rows.to_json, "csv": rows.to_csv, "parquet": rows.to_parquet}[form](
            str(folder / f"{split}.{form}")
        )
    made, _ = brought(f"hub:{folder}", "translation")
    assert load_split([made], "val", ("en", "de")).sources == [f"one {n}" for n in range(4)]


class Trap:
    """Unpickling it would write a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def test_pickles_and_code_are_never_run(tmp_path):
    folder, sprung = tmp_path / "bad", tmp_path / "sprung"
    folder.mkdir()
    (folder / "train.pkl").write_bytes(pickle.dumps(Trap(sprung)))
    for card in (
        "",
        "---\nconfigs:\n- config_name: default\n  builder_name: pandas\n  data_files: '*.pkl'\n---\n",
    ):
        (folder / "README.md").write_text(card)
        with pytest.raises(DataError):
            brought(f"hub:{folder}", "translation")
    (folder / "train.pkl").unlink()
    (folder / "README.md").unlink()
    (folder / "bad.py").write_text(f"open({str(sprung)!r}, 'w')")
    with pytest.raises(DataError):
        brought(f"hub:{folder}", "translation")
    assert not sprung.exists()


def test_another_format_is_refused(tmp_path):
    folder = tmp_path / "xml"
    folder.mkdir()
    (folder / "train.xml").write_text("<a/>")
    with pytest.raises(DataError, match=r"in the format xml: headwise reads arrow, csv, .*parquet"):
        brought(f"hub:{folder}", "translation")


def test_no_network(monkeypatch):
    def away(*arguments, **options):
        raise ConnectionError("Couldn't reach 'a/b' on the Hub\n(SomeError).")

    monkeypatch.setattr(datasets, "load_dataset_builder", away)
    with pytest.raises(
        DataError, match=r"hub:a/b can't be read: Couldn't reach 'a/b' .*is the network there"
    ) as caught:
        brought("hub:a/b", "translation")
    assert "\n" not in str(caught.value)


def test_what_the_hub_is_asked_for(monkeypatch):
    asked = []

    def ask(*arguments, **options):
        asked.append((arguments, options))
        raise ConnectionError("away")

    monkeypatch.setattr(datasets, "load_dataset_builder", ask)
    with pytest.raises(DataError):
        brought("hub:a/b:c@d", "translation")
    assert asked == [(("a/b", "c"), {"revision": "d"})]  # and nothing that would trust code


def test_the_library_is_missing_or_old(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "__version__", "3.6.0")
    with pytest.raises(DataError, match=r"runs code of datasets: pip install 'datasets>=4'"):
        brought("hub:a/b", "translation")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'headwise\[hub\]'"):
        brought("hub:a/b", "translation")


def test_other_applications_say_so(tmp_path):
    with pytest.raises(DataError, match="speech reads no data of the hub, only of translation"):
        brought(saved(tmp_path / "a", train=languages(2)), "speech")


def test_changed_data_is_brought_again_and_the_same_is_not(tmp_path, cache):
    path = saved(tmp_path / "a", train=languages(4), validation=languages(3), test=languages(3))
    first, _ = brought(path, "translation")
    stamp = (first / "train.en").stat().st_mtime_ns
    again, _ = brought(path, "translation")
    assert again == first
    assert (first / "train.en").stat().st_mtime_ns == stamp
    saved(tmp_path / "b", train=languages(5), validation=languages(3), test=languages(3))
    (tmp_path / "a").rename(tmp_path / "old")
    (tmp_path / "b").rename(tmp_path / "a")
    other, _ = brought(path, "translation")
    assert other != first
    assert len(load_split([other], "train", ("en", "de"))) == 5


def test_training_and_going_on(tmp_path):
    path = saved(tmp_path / "a", train=languages(29), validation=languages(3), test=languages(3))
    changes = [
        "num_layers=1",
        "d_model=16",
        "d_ff=32",
        "num_heads=2",
        "vocab_size=300",
        "steps=2",
        "validate_every=2",
        "precision=float32",
        "device=cpu",
        "max_tokens=300",
    ]
    run = tmp_path / "run"
    translation = find("translation")
    train_application(translation, run, [path], changes=changes, show=False)
    (tmp_path / "a").rename(tmp_path / "away")  # what was brought is in the cache
    report = train_application(translation, run, changes=["steps=4"], show=False, resume=True)
    assert report.step == 4
    kept = json.loads((run / "config.json").read_text())["data"]["paths"][0]
    assert "hub" in kept
