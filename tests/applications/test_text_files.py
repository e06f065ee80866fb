"""Plain text files, and every mistake in them named in one line."""

import gzip

import pytest

from headwise.applications.errors import DataError
from headwise.applications.text_files import find_split, load_split, read_lines, read_pairs

LANGUAGES = ("en", "de")


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def refusal(function, *arguments):
    with pytest.raises(DataError) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lines_end_at_line_feeds_alone_and_lose_their_outer_blanks(tmp_path):
    write(tmp_path, a="\ufeffone \r\n two\u2028still two\x85and\nthree")
    assert read_lines(tmp_path / "a") == ["one", "two\u2028still two\x85and", "three"]


def test_gzip_is_read_by_its_name(tmp_path):
    write(tmp_path, a__gz=gzip.compress(b"eins\nzwei\n"))
    assert read_lines(tmp_path / "a.gz") == ["eins", "zwei"]
    write(tmp_path, b__gz="eins\nzwei\n", c__gz=gzip.compress(b"eins\n" * 99)[:-9])
    assert "gzip" in refusal(read_lines, tmp_path / "b.gz")
    assert "gzip" in refusal(read_lines, tmp_path / "c.gz")


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\ufeff"])
def test_a_file_without_text_is_empty(tmp_path, text):
    write(tmp_path, a=text)
    assert "is empty" in refusal(read_lines, tmp_path / "a")


def test_other_encodings_are_refused_with_the_line(tmp_path):
    write(tmp_path, latin="eins\nzwei\nfünf\n".encode("latin-1"), wide="eins\n".encode("utf-16-le"))
    message = refusal(read_lines, tmp_path / "latin")
    assert "line 3" in message
    assert "0xfc" in message
    assert "line 1" in refusal(read_lines, tmp_path / "wide")


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere" in refusal(read_lines, tmp_path / "nowhere")


def test_pairs_fit_line_by_line_and_lines_empty_in_both_are_left_out(tmp_path):
    write(tmp_path, a="one\n\ntwo\n", b="eins\n\nzwei\n")
    pairs = read_pairs(tmp_path / "a", tmp_path / "b")
    assert (pairs.sources, pairs.targets) == (["one", "two"], ["eins", "zwei"])
    assert len(pairs) == 2


def test_the_first_line_that_has_no_partner_is_named(tmp_path):
    write(tmp_path, a="1\n2\n3\n4\n5\n", b="1\n2\n3\n", c="1\n\n3\n4\n5\n", d="1\n\n3\n4\n")
    message = refusal(read_pairs, tmp_path / "a", tmp_path / "b")
    assert "line 4" in message
    assert "has 5 lines" in message
    assert "line 2 is empty" in refusal(read_pairs, tmp_path / "a", tmp_path / "c")
    both = refusal(read_pairs, tmp_path / "d", tmp_path / "a")
    assert "line 2" in both
    assert "has 4 lines" in both


def test_splits_are_found_by_their_names(tmp_path):
    write(tmp_path, train__en="a", train__de="b", dev__en="c", dev__de__gz=gzip.compress(b"d"))
    write(tmp_path, test_2016__en="e", test_2016__de="f", notes__txt="g")
    names = {
        split: [one.name for one in find_split(tmp_path, split, LANGUAGES)]
        for split in ("train", "val", "test")
    }
    assert names == {
        "train": ["train.en", "train.de"],
        "val": ["dev.en", "dev.de.gz"],
        "test": ["test_2016.en", "test_2016.de"],
    }
    assert find_split(tmp_path, "other", LANGUAGES) is None
    assert load_split([tmp_path], "test_2016", LANGUAGES).sources == ["e"]


def test_splits_that_are_missing_or_ambiguous_are_refused(tmp_path):
    write(tmp_path, train__en="a", test_1__en="e", test_1__de="f", test_2__en="e", test_2__de="f")
    assert "train.de is missing" in refusal(find_split, tmp_path, "train", LANGUAGES)
    message = refusal(find_split, tmp_path, "test", LANGUAGES)
    assert "test_1, test_2" in message
    assert "no val set" in refusal(load_split, [tmp_path], "val", LANGUAGES)
    assert "is a file" in refusal(find_split, tmp_path / "train.en", "train", LANGUAGES)
    assert "doesn't exist" in refusal(find_split, tmp_path / "none", "train", LANGUAGES)


def test_two_files_are_split_by_their_sources_whatever_the_order(tmp_path):
    lines = [f"sentence {number}" for number in range(499)]
    repeated = lines + lines[:101]
    write(tmp_path, a="\n".join(repeated), b="\n".join(line.upper() for line in repeated))
    backwards = repeated[::-1]
    write(tmp_path, c="\n".join(backwards), d="\n".join(line.upper() for line in backwards))
    found = {}
    for split in ("train", "val", "test"):
        one = load_split([tmp_path / "a", tmp_path / "b"], split, LANGUAGES)
        other = load_split([tmp_path / "c", tmp_path / "d"], split, LANGUAGES)
        assert [text.upper() for text in one.sources] == one.targets
        assert sorted(one.sources) == sorted(other.sources)
        found[split] = set(one.sources)
    assert not found["train"] & found["val"]
    assert not found["train"] & found["test"]
    assert not found["val"] & found["test"]
    assert set(lines) == found["train"] | found["val"] | found["test"]
    assert len(found["train"]) > 0.9 * len(lines)


def test_too_few_lines_or_too_many_files_are_refused(tmp_path):
    write(tmp_path, a="one\n", b="eins\n")
    files = [tmp_path / "a", tmp_path / "b"]
    splits = [split for split in ("train", "val", "test") if not _has(files, split)]
    assert len(splits) == 2
    for split in splits:
        assert "too few" in refusal(load_split, files, split, LANGUAGES)
    assert "3 paths" in refusal(load_split, [*files, tmp_path], "train", LANGUAGES)
    assert "splits train, val, test" in refusal(load_split, files, "dev", LANGUAGES)


def _has(files, split):
    try:
        return bool(load_split(files, split, LANGUAGES))
    except DataError:
        return False


def test_the_digest_tells_other_texts_apart(tmp_path):
    write(tmp_path, a="one\ntwo\n", b="eins\nzwei\n", c="two\none\n")
    digest = read_pairs(tmp_path / "a", tmp_path / "b").digest()
    assert digest == read_pairs(tmp_path / "a", tmp_path / "b").digest()
    assert digest != read_pairs(tmp_path / "c", tmp_path / "b").digest()
    assert digest != read_pairs(tmp_path / "b", tmp_path / "a").digest()
