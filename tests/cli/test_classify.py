"""A head's name at, just below and far from each threshold."""

from dataclasses import replace

import pytest

from headwise.cli.classify import BROAD, NAMES, RULES, SPECIFIC, Verdict, classify

NOTHING = dict.fromkeys((*SPECIFIC, "nearby"), 0.0)
EVEN = dict.fromkeys((*SPECIFIC, "nearby"), 0.01)


def name(evenness=0.5, even=EVEN, **shares):
    return classify({**NOTHING, **shares}, even, evenness)


@pytest.mark.parametrize("kind", SPECIFIC)
def test_a_share_of_40_percent_names_the_head(kind):
    assert name(**{kind: 0.40}).kind == kind
    assert name(**{kind: 0.394}).kind == "mixed"


@pytest.mark.parametrize("kind", [*SPECIFIC, "nearby"])
def test_what_is_shown_as_40_percent_counts_as_40_percent(kind):
    verdict = name(**{kind: 0.3951})
    assert verdict.kind == kind
    assert "40%" in verdict.words


@pytest.mark.parametrize("kind", [*SPECIFIC, "nearby"])
def test_a_share_that_an_even_spread_would_nearly_give_names_nothing(kind):
    short_text = {**EVEN, kind: 1 / 3}
    assert name(even=short_text, **{kind: 0.6}).kind == "mixed"
    assert name(even=short_text, **{kind: 0.67}).kind == kind


def test_the_largest_share_names_the_head_and_the_others_follow_it():
    verdict = name(previous=0.2, first=0.45, punctuation=0.25, itself=0.19)
    assert (verdict.kind, verdict.share) == ("first", 0.45)
    assert verdict.also == (("punctuation", 0.25), ("previous", 0.2))
    assert verdict.words == "first token 45%, punctuation 25%, previous 20%"


def test_equal_shares_are_named_in_the_stated_order():
    assert name(next=0.45, previous=0.45).kind == "previous"


def test_nearby_is_asked_after_the_specific_kinds_and_does_not_repeat_its_parts():
    assert name(previous=0.4, nearby=0.7).kind == "previous"
    verdict = name(previous=0.3, next=0.2, nearby=0.6, first=0.25)
    assert (verdict.kind, verdict.also) == ("nearby", (("first", 0.25),))


def test_broad_is_a_matter_of_entropy_alone():
    assert name(evenness=BROAD).kind == "broad"
    assert name(evenness=BROAD - 0.001).kind == "mixed"
    assert name(evenness=1.0, first=0.5).kind == "first"


def test_a_mixed_head_names_what_it_does_most():
    verdict = name(first=0.3, previous=0.22)
    assert (verdict.kind, verdict.share) == ("mixed", None)
    assert verdict.words == "mixed: first 30%, previous 22%"
    assert name().words == "mixed"


def test_kinds_that_the_text_lacks_are_no_obstacle():
    verdict = classify(
        {**NOTHING, "same": None, "punctuation": None, "next": 0.9}, {**EVEN, "same": None}, 0.1
    )
    assert verdict.words == "next token 90%"


def test_the_rules_state_every_threshold():
    for number in ("40%", "20%", "2 times", "80%"):
        assert number in RULES
    assert set(SPECIFIC) | {"nearby", "single", "broad", "mixed"} == set(NAMES)


def test_words_speak_of_what_the_keys_are():
    near = Verdict("nearby", 0.6, (("first", 0.3),))
    assert near.words == "nearby tokens 60%, first 30%"
    assert replace(near, unit="frame").words == "nearby frames 60%, first 30%"
    assert replace(near, unit="patch").words == "nearby patches 60%, class token 30%"
    assert Verdict("first", 0.5, unit="patch").words == "class token 50%"
    assert Verdict("previous", 0.5, unit="frame").words == "previous frame 50%"
    assert Verdict("single", None).words == "single keys"
