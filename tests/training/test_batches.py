from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.training import Collated, token_batches

pairs = st.lists(st.tuples(st.integers(0, 23), st.integers(1, 23)), max_size=60)


@given(
    lengths=pairs, max_tokens=st.integers(23, 90), most=st.none() | st.integers(1, 5), shuffle=st.booleans()
)
@settings(max_examples=80, deadline=None)
def test_every_example_once_and_never_too_many_tokens(lengths, max_tokens, most, shuffle):
    batches = token_batches(lengths, max_tokens, max_examples=most, shuffle=shuffle, seed=3, epoch=2)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        for side in (0, 1):
            assert len(batch) * max(lengths[number][side] for number in batch) <= max_tokens
        assert most is None or len(batch) <= most


def test_batches_hold_similar_lengths():
    lengths = [1 + 7 * number % 50 for number in range(500)]
    for batch in token_batches(lengths, 100):
        assert max(lengths[n] for n in batch) - min(lengths[n] for n in batch) <= 8
    filled = sum(lengths)
    cells = sum(len(b) * max(lengths[n] for n in b) for b in token_batches(lengths, 100))
    assert filled > 0.9 * cells


def test_order_depends_on_seed_and_epoch_alone():
    lengths = [1 + number % 3 for number in range(50)]
    one = token_batches(lengths, 12, seed=1, epoch=4)
    assert one == token_batches(lengths, 12, seed=1, epoch=4)
    assert one != token_batches(lengths, 12, seed=1, epoch=5)
    assert one != token_batches(lengths, 12, seed=2, epoch=4)
    # other companions, not only another order of the same batches
    assert {frozenset(b) for b in one} != {frozenset(b) for b in token_batches(lengths, 12, seed=1, epoch=5)}


def test_without_shuffling_shorter_ones_come_first():
    assert token_batches([3, 1, 2, 1], 4, shuffle=False) == [[1, 3], [2], [0]]


def test_a_resumed_epoch_makes_only_what_is_left():
    made = []

    def collate(numbers):
        made.append(tuple(numbers))
        return sum(numbers)

    batches = Collated([[0, 1], [2], [3, 4]], collate)
    assert len(batches) == 3
    assert list(batches.starting_at(1)) == [2, 7]
    assert made == [(2,), (3, 4)]
    assert list(batches) == [1, 2, 7]
    assert list(batches.starting_at(3)) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1, 9, 2], 8), "example 1 has 9 tokens and a batch may hold 8"),
        (([1], 0), "max_tokens is 0"),
        (([(1, 5)], 4), "example 0 has 5"),
    ],
)
def test_what_cannot_be_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        token_batches(*arguments)
    with pytest.raises(ValueError, match="max_examples is 0"):
        token_batches([1], 5, max_examples=0)
