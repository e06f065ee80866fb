"""Text, file or standard input, and what can be wrong with each."""

import io
import sys

import pytest

from headwise.cli.errors import UserError
from headwise.cli.text import looks_like_path, read_text


def test_no_argument_is_the_sample_text():
    found = read_text(None)
    assert found.origin == "the sample text"
    assert "lighthouse" in found.content


def test_the_sample_is_called_so_wherever_it_is_read_from(tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_text(read_text(None).content + "\n", encoding="utf-8")
    assert read_text(str(copy)).origin == "the sample text"


def test_anything_that_is_no_path_is_the_text_itself():
    assert read_text("The cat sat.").content == "The cat sat."
    assert read_text("cat").content == "cat"
    assert read_text("x" * 10_000).content == "x" * 10_000


def test_an_existing_file_is_read(tmp_path):
    file = tmp_path / "poem"
    file.write_bytes("\ufeffÜber allen Gipfeln\n".encode())
    found = read_text(str(file))
    assert (found.content, found.origin) == ("Über allen Gipfeln", str(file))


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n"), encoding="ascii"))
    assert read_text("-").content == "from a pipe"


@pytest.mark.parametrize(
    "argument", ["notes.txt", "a/b.md", "./notes", "../a", "/a/b", "~/a", "C:\\notes", "runs/en-de"]
)
def test_one_word_that_begins_or_ends_like_a_path_was_meant_as_a_file(argument):
    assert looks_like_path(argument)
    with pytest.raises(UserError, match="no file"):
        read_text(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "cat",
        "The end.",
        "3.14",
        "e.g. this one",
        "",
        "U.S.",
        "really?!",
        "and/or",
        "either/or",
        "a\\b",
        "/",
        "…/…",
    ],
)
def test_words_are_no_paths(argument):
    assert not looks_like_path(argument)


def test_a_name_in_a_folder_that_is_there_was_meant_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not looks_like_path("letters/one")
    (tmp_path / "letters").mkdir()
    assert looks_like_path("letters/one")
    assert not looks_like_path("letters/")


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path, content):
    file = tmp_path / "empty.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match="is empty: give at least one word"):
        read_text(str(file))


@pytest.mark.parametrize("argument", ["", "   "])
def test_an_empty_argument_is_refused(argument):
    with pytest.raises(UserError, match="is empty"):
        read_text(argument)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"\x89PNG\r\n\x1a\n", "byte 0 is 0x89"), (b"ab\x00cd", "byte 2 is 0"), (b"caf\xe9", "0xe9")],
)
def test_a_binary_file_is_refused_with_the_byte(tmp_path, content, says):
    file = tmp_path / "picture.png"
    file.write_bytes(content)
    with pytest.raises(UserError, match=says):
        read_text(str(file))


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        read_text(str(tmp_path))
