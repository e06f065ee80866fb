"""Tokens in a line of the terminal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.cli.wording import shown, shown_pair, width


def plain(text):
    return text.replace("\u2068", "").replace("\u2069", "")


@pytest.mark.parametrize("token", ["##ر", "ש", "a\u05d0b", "\u0663"])
def test_letters_that_run_from_right_to_left_are_isolated(token):
    assert shown(token) == f"\u2068{token}\u2069"


@pytest.mark.parametrize("token", ["the", "##ing", "中", "…", "7", ""])
def test_others_stay_as_they_are(token):
    assert shown(token) == token


def test_directions_that_a_token_brings_along_are_written_out():
    assert shown("\u202eevil") == r"\u202eevil"


def test_a_long_token_is_cut_inside_its_isolation():
    assert shown("abcdefg", 5) == "abcd…"
    assert shown("אבגדהוז", 5) == "\u2068אבגד…\u2069"


def test_the_longer_token_of_a_pair_is_cut_first():
    assert shown_pair("lighthouse", "a", arrow="->", room=11) == "light… -> a"
    assert shown_pair("a", "lighthouse", arrow="->", room=11) == "a -> light…"
    assert shown_pair("lighthouse", "lighthouse", arrow="->", room=14) == "ligh… -> ligh…"
    assert shown_pair("lighthouse", "keeper", arrow="->") == "lighthouse -> keeper"


@settings(deadline=None, max_examples=200)
@given(query=st.text(max_size=23), key=st.text(max_size=23), room=st.integers(10, 40))
def test_a_pair_is_never_wider_than_its_room(query, key, room):
    said = shown_pair(query, key, arrow="->", room=room)
    assert width(plain(said)) <= room
    assert said.count("\u2068") == said.count("\u2069")
