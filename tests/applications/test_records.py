"""Tables of texts, and every mistake in them named in one line."""

import gzip

import pytest

from headwise.applications.errors import DataError
from headwise.applications.records import load_records, read_records

NEEDED = ("text", "summary")


def refusal(tmp_path, content, name="a.tsv"):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_records(path, NEEDED)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_both_kinds_give_the_same_rows(tmp_path):
    (tmp_path / "a.tsv").write_text("group\tsummary\ttext\n\tb\t a c\nx\td\te\n")
    (tmp_path / "a.jsonl").write_text(
        '{"text": "a c", "summary": "b", "group": "", "n": 3}\n\n{"group": "x","text": "e", "summary": "d"}\n'
    )
    expected = [{"group": "", "summary": "b", "text": "a c"}, {"group": "x", "summary": "d", "text": "e"}]
    assert read_records(tmp_path / "a.tsv", NEEDED) == expected
    assert read_records(tmp_path / "a.jsonl", NEEDED) == expected
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    assert read_records(tmp_path / "a.tsv.gz", NEEDED) == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", "text\tother\na\tb\n", "line 1 has no summary"),
        ("a.tsv", "text\tsummary\na\tb\na\n", "line 3 has 1 columns"),
        ("a.tsv", "text\tsummary\na\tb\nc\t\n", "line 3: summary is empty"),
        ("a.tsv", "text\tsummary\n", "no rows"),
        ("a.jsonl", '{"text": "a", "summary": "b"}\n{"text"\n', "line 2 is no JSON"),
        ("a.jsonl", '{"text": "a"}\n', "line 1 has no summary"),
        ("a.jsonl", '{"text": "a", "summary": 7}\n', "summary must be a text"),
        ("a.jsonl", "[1]\n", "no JSON object"),
        ("a.csv", "text,summary\n", "tables end in"),
    ],
)
def test_mistakes_are_named(tmp_path, name, content, words):
    assert words in refusal(tmp_path, content, name)


def test_one_file_is_split_by_groups(tmp_path):
    rows = [f"package {number // 3}\ttext {number}\tsummary {number}" for number in range(331)]
    (tmp_path / "all.tsv").write_text("\n".join(["group\ttext\tsummary", *rows]))
    found = {
        split: load_records([tmp_path / "all.tsv"], split, NEEDED, group="group")
        for split in ("train", "val", "test")
    }
    assert sum(map(len, found.values())) == len(rows)
    groups = [{row["group"] for row in part} for part in found.values()]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]


def test_a_folder_has_a_file_for_each_split(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tsummary\na\tb\n")
    (tmp_path / "dev.jsonl").write_text('{"text": "c", "summary": "d"}\n')
    assert load_records([tmp_path], "val", NEEDED, group="group") == [{"text": "c", "summary": "d"}]
    with pytest.raises(DataError, match="no test set"):
        load_records([tmp_path], "test", NEEDED, group="group")
    (tmp_path / "train.jsonl").write_text('{"text": "c", "summary": "d"}\n')
    with pytest.raises(DataError, match="keep one"):
        load_records([tmp_path], "train", NEEDED, group="group")
