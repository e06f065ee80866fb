"""When a card comes back: FSRS over the log of its reviews."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logbook import DAY, HOUR, MINUTE, NOON
from make_schedules import FILE, made
from schedule_cases import WAITS, easy_for_ever, last_days

from headwise.study.progress import Review, days, fold
from headwise.study.progress.schedule import after, previews, recall
from headwise.study.progress.waits import words


def folded(*steps):
    """The states after (rating, instant) pairs."""
    state, states = None, []
    for number, (rating, at) in enumerate(steps):
        state = after(state, Review(f"r{number}", at, rating))
        states.append(state)
    return states


def test_both_languages_are_held_to_what_the_package_gives_now():
    # test_schedule_in_browser.py compares the browser's modules with the same file.
    assert json.loads(json.dumps(made())) == json.loads(FILE.read_text(encoding="utf-8"))


def test_our_states_are_what_the_package_makes_of_the_same_reviews():
    for case in made():
        state, states = None, []
        for review in case["reviews"]:
            state = after(state, Review(**review))
            states.append(state.to_dict())
        assert states == case["states"], case["name"]
        assert previews(state, case["reviews"][-1]["at"] + DAY) == case["next"], case["name"]


def test_intervals_grow_with_success_and_fall_with_a_lapse():
    state, waits = None, []
    at = NOON
    for number, rating in enumerate((3, 3, 3, 3, 1, 3, 4)):
        state = after(state, Review(f"r{number}", at, rating))
        waits.append(state.due - at)
        at = state.due
    assert waits == [10 * MINUTE, 2 * DAY, 11 * DAY, 46 * DAY, 10 * MINUTE, 3 * DAY, 12 * DAY]
    assert (state.reviews, state.lapses) == (7, 1)


def test_a_review_that_is_not_later_is_never_handed_to_the_scheduler():
    # It would be taken in silence, and planned into the past.
    first = after(None, Review("a", NOON, 3))
    for at in (NOON, NOON - 1, NOON - 400 * DAY):
        with pytest.raises(ValueError, match="follows one at"):
            after(first, Review("b", at, 3))


reviews = st.lists(
    st.builds(
        Review,
        id=st.from_regex(r"[a-z]{8}", fullmatch=True),
        at=st.integers(NOON, NOON + 900 * DAY),
        rating=st.integers(1, 4),
    ),
    max_size=12,
    unique_by=lambda review: review.id,
)


@given(reviews)
def test_a_fold_takes_any_reviews_in_their_order(found):
    ordered = sorted(found, key=lambda review: (review.at, review.id))
    state = fold(ordered)
    assert (state is None) == (not found)
    if state is not None:
        assert state.reviews == len(found)
        assert state.head == ordered[-1].id
        assert state.due > state.last >= ordered[-1].at
        assert fold(ordered) == state  # nothing is drawn by chance


@given(reviews, st.integers(0, 12))
def test_a_fold_can_go_on_from_any_place(found, cut):
    ordered = sorted(found, key=lambda review: (review.at, review.id))
    distinct = [
        review for place, review in enumerate(ordered) if not place or review.at > ordered[place - 1].at
    ]
    state = fold(distinct[:cut])
    for review in distinct[cut:]:
        state = after(state, review)
    assert state == fold(distinct)


def test_the_four_previews_are_what_the_ratings_will_do():
    (state,) = folded((3, NOON))
    later = NOON + 3 * HOUR
    for rating, at in previews(state, later).items():
        assert at == after(state, Review("next", later, rating)).due
    assert previews(state, NOON - DAY) == previews(state, NOON + 1)  # a clock that was set back


@pytest.mark.parametrize(("wait", "told"), WAITS.items())
def test_a_wait_is_told_in_round_words(wait, told):
    assert words(wait) == told  # test_schedule_in_browser.py asks the same of waits.js


def test_a_review_at_the_end_of_all_dates_has_previews_and_comes_back_by_then():
    first, *later = (fold(last_days()[: count + 1]) for count in range(3))
    assert first.due == days.LATEST
    assert [state.due for state in later] == [state.last for state in later]  # at once: no day is left
    for state in (first, *later):
        assert set(previews(state, state.last + HOUR)) == {1, 2, 3, 4}
        assert 0 < recall(state, state.last + HOUR) <= 1
    assert after(None, last_days()[0]).stability == after(None, Review("now", NOON, 4)).stability


def test_recall_falls_to_ninety_percent_at_the_stability():
    state = folded((4, NOON))[-1]
    assert recall(state, NOON) == pytest.approx(1)
    before, at = (
        recall(state, NOON + days * DAY) for days in (int(state.stability), int(state.stability) + 1)
    )
    assert before >= 0.9 >= at


def test_a_memory_grows_no_more_stable_than_the_longest_wait():
    states = [fold(easy_for_ever()[: count + 1]) for count in range(len(easy_for_ever()))]
    assert max(state.stability for state in states) == 36_500
    assert max(state.due - state.last for state in states) == 36_500 * DAY
