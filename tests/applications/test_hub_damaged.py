"""Data of the hub that is damaged, or wants what it must not have."""

import io
import json

import pytest

from headwise.applications import DataError
from headwise.applications.data_images import load_images
from headwise.applications.datasets.hub import bring
from headwise.applications.records import load_records
from headwise.applications.text_files import load_split

datasets = pytest.importorskip("datasets")
parquet = pytest.importorskip("pyarrow.parquet")
PIL = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def refuses(tmp_path):
    def refused(columns, application, match, more=""):
        datasets.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "damaged"))
        with pytest.raises(DataError, match=match):
            bring(f"hub:{tmp_path / 'damaged'}{more}", application, print)

    return refused


def png():
    held = io.BytesIO()
    PIL.new("L", (5, 7), 9).save(held, "PNG")
    return held.getvalue()


def held(count):
    return [{"bytes": png(), "path": None}] * count


def test_a_table_reads_no_files_of_the_machine(tmp_path, refuses):
    private = tmp_path / "private.png"
    private.write_bytes(png())
    said = "row 0: its image is said to be .*private.png, which is no file of this dataset"
    inside_out = str(tmp_path / "damaged" / ".." / "private.png")
    for given in (str(private), inside_out, {"bytes": None, "path": str(private)}):
        refuses({"image": [given] * 2, "label": ["a", "b"]}, "vision", said)
    refuses({"image": ["/dev/zero"], "label": ["a"]}, "vision", "no file of this dataset")


def test_files_of_a_dataset_are_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(9):
            (tmp_path / "images" / name / f"{number}.png").write_bytes(png())
    folder = bring(f"hub:{tmp_path / 'images'}", "vision", print)
    assert sum(len(some) for some in load_images(folder).values()) == 18


def test_classes_stay_apart(tmp_path, refuses):
    refuses({"image": held(2), "label": ["a/b", "a_b"]}, "vision", "differ only in signs")
    names = ["train", "test", "other"]
    made = datasets.Dataset.from_dict({"image": held(60), "label": names * 20})
    made.save_to_disk(str(tmp_path / "splits"))
    found = load_images(bring(f"hub:{tmp_path / 'splits'}", "vision", print))
    assert found["train"].classes == ("other", "test_", "train_")


def test_labels_beyond_the_classes(tmp_path):
    own = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    features = {**own, "label": datasets.ClassLabel(names=["a", "b"])}
    said = json.dumps({"info": {"features": datasets.Features(features).to_dict()}}).encode()
    for wrong in (2, -2):
        table = datasets.Dataset.from_dict({"image": held(2), "label": [0, wrong]}, features=own).data.table
        folder = tmp_path / f"wrong{wrong}"
        folder.mkdir()
        parquet.write_table(table.replace_schema_metadata({b"huggingface": said}), folder / "train.parquet")
        with pytest.raises(DataError, match=f"row 1: label {wrong}, and there are 2 classes"):
            bring(f"hub:{folder}", "vision", print)


def test_columns_of_another_kind(refuses):
    refuses({"image": [1, 2], "label": ["a", "b"]}, "vision", "image holds no images")
    refuses({"translation": [["one"], ["two"]]}, "translation", "no text by language")
    answers = [{"text": ["a", "b"], "answer_start": [0]}]
    refuses(
        {"context": ["a b"], "question": ["?"], "answers": answers},
        "question-answering",
        "row 0: each of its answers needs a text and an answer_start",
    )
    columns = {"body": ["a"], "other": ["b"]}
    refuses(columns, "summarization", "stand for one of ours alone", ",text=body,summary=body")


def test_the_first_row_may_lack_a_language(tmp_path):
    pairs = [{"en": f"one {n}", "de": f"eins {n}" if n else None} for n in range(50)]
    datasets.Dataset.from_dict({"translation": pairs}).save_to_disk(str(tmp_path / "a"))
    folder = bring(f"hub:{tmp_path / 'a'}", "translation", print)
    counts = [len(load_split([folder], split, ("en", "de")).sources) for split in ("train", "val", "test")]
    assert sum(counts) == 49


def test_columns_may_change_places(tmp_path):
    rows = {"text": [f"short {n}" for n in range(300)], "summary": [f"very long {n}" for n in range(300)]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "a"))
    folder = bring(f"hub:{tmp_path / 'a'},text=summary,summary=text", "summarization", print)
    found = load_records([folder], "train", ("text", "summary"), group="text")
    assert found[0]["summary"].startswith("short")
