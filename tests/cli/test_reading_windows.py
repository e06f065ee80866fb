"""Windows over a long text: every token once, each where it sees most."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.cli.errors import UserError
from headwise.cli.windows import MOST, read


def tokens_of(content):
    return [101, *range(1000, 1000 + content), 102], ["[CLS]", *(f"t{i}" for i in range(content)), "[SEP]"]


def test_a_short_text_is_one_window():
    reading = read(*tokens_of(5), limit=7, stride=None)
    (window,) = reading.windows
    assert window.places == window.rows == (0, 1, 2, 3, 4, 5, 6)
    assert reading.special == (True, False, False, False, False, False, True)
    assert not reading.cut


def test_without_a_stride_the_first_part_is_read_and_ends_in_the_separator():
    reading = read(*tokens_of(11), limit=7, stride=None)
    assert reading.tokens == ("[CLS]", "t0", "t1", "t2", "t3", "t4", "[SEP]")
    assert (reading.cut, reading.whole) == (True, 13)
    assert reading.windows[0].rows == (0, 1, 2, 3, 4, 5, 6)


@settings(deadline=None, max_examples=100)
@given(content=st.integers(1, 60), room=st.integers(1, 17), data=st.data())
def test_every_token_is_taken_from_exactly_one_window(content, room, data):
    stride = data.draw(st.integers(1, room))
    reading = read(*tokens_of(content), limit=room + 2, stride=stride)
    taken = [window.places[row] for window in reading.windows for row in window.rows]
    assert sorted(taken) == list(range(content + 2))
    assert not reading.cut
    for window in reading.windows:
        assert len(window.places) <= room + 2
        assert window.places[0] == 0
        assert window.places[-1] == content + 1
        inner = window.places[1:-1]
        assert list(inner) == list(range(inner[0], inner[-1] + 1))


def test_a_token_is_taken_from_the_window_in_which_its_nearer_cut_is_farther():
    # Windows of 5 tokens start at 0, 3 and 6. Token 4 has 0 neighbours to the right of it in the first
    # and 1 to the left in the second; token 3 has 1 and 0. The text's own ends are no cuts.
    reading = read(*tokens_of(11), limit=7, stride=3)
    assert [window.places[1] - 1 for window in reading.windows] == [0, 3, 6]
    taken = [[window.places[row] - 1 for row in window.rows] for window in reading.windows]
    assert taken == [[-1, 0, 1, 2, 3], [4, 5, 6], [7, 8, 9, 10, 11]]


def test_a_separator_written_into_the_text_counts_as_special():
    reading = read([101, 7, 102, 8, 102], ["[CLS]", "a", "[SEP]", "b", "[SEP]"], limit=9, stride=None)
    assert reading.special == (True, False, True, False, True)


@pytest.mark.parametrize("stride", [0, -1, 6])
def test_a_stride_that_stands_still_or_skips_tokens_is_refused(stride):
    with pytest.raises(UserError, match=rf"--stride {stride} must lie in 1 \.\. 5"):
        read(*tokens_of(11), limit=7, stride=stride)


def test_a_text_without_tokens_is_refused():
    with pytest.raises(UserError, match="no token"):
        read([101, 102], ["[CLS]", "[SEP]"], limit=7, stride=None)


def test_more_tokens_than_a_report_can_name_are_refused():
    with pytest.raises(UserError, match=f"at most {MOST}"):
        read(*tokens_of(MOST), limit=512, stride=256)
