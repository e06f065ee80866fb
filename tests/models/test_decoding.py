"""Greedy, beam search and sampling, against every output that there is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_steppers import EOS, TreeStepper, beam_by_hand, every_output, log_probability, random_tables, ranked

from headwise.models.decoding import (
    Hypothesis,
    beam_search,
    ctc_greedy,
    greedy,
    keep_likely,
    length_penalty,
    sample,
)


def check_scores(table: Tensor, found: Hypothesis, alpha: float) -> None:
    """A hypothesis says of itself what is true of it."""
    tokens = (*found.tokens, EOS) if found.finished else tuple(found.tokens)
    assert found.log_probability == pytest.approx(log_probability(table, tokens), abs=1e-9)
    assert found.score == pytest.approx(found.log_probability / length_penalty(len(tokens), alpha), abs=1e-9)


trees = st.tuples(
    st.integers(0, 10_000), st.integers(2, 4), st.lists(st.integers(1, 4), min_size=1, max_size=3)
)


@settings(max_examples=60)
@given(tree=trees, alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]), early_stop=st.booleans())
def test_a_beam_wide_enough_finds_the_best_of_all_outputs(
    tree: tuple[int, int, list[int]], alpha: float, early_stop: bool
) -> None:
    seed, vocabulary, limits = tree
    tables = random_tables(seed, len(limits), vocabulary, max(limits))
    width = vocabulary ** max(limits)
    found = beam_search(TreeStepper(tables, limits), beam=width, alpha=alpha, early_stop=early_stop)
    for table, limit, mine in zip(tables, limits, found, strict=True):
        expected = ranked(every_output(table, limit), alpha)
        finished = [one for one in expected if one.finished]
        assert [tuple(one.tokens) for one in mine][: len(finished)] == [one.tokens for one in finished]
        assert {tuple(one.tokens) for one in mine if not one.finished} == {
            one.tokens for one in expected if not one.finished
        }
        for one in mine:
            check_scores(table, one, alpha)


@settings(max_examples=80)
@given(
    tree=trees,
    beam=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
    early_stop=st.booleans(),
)
def test_beam_search_does_what_it_describes(
    tree: tuple[int, int, list[int]], beam: int, alpha: float, early_stop: bool
) -> None:
    seed, vocabulary, limits = tree
    tables = random_tables(seed, len(limits), vocabulary, max(limits))
    found = beam_search(TreeStepper(tables, limits), beam=beam, alpha=alpha, early_stop=early_stop)
    for table, limit, mine in zip(tables, limits, found, strict=True):
        expected = beam_by_hand(table, limit, beam, alpha, early_stop=early_stop)
        assert [(tuple(one.tokens), one.finished) for one in mine] == [
            (one.tokens, one.finished) for one in expected
        ]
        for one in mine:
            check_scores(table, one, alpha)


@settings(max_examples=60)
@given(tree=trees)
def test_a_beam_of_one_is_greedy(tree: tuple[int, int, list[int]]) -> None:
    seed, vocabulary, limits = tree
    tables = random_tables(seed, len(limits), vocabulary, max(limits))
    alone = greedy(TreeStepper(tables, limits))
    for one, (best,), table in zip(
        alone, beam_search(TreeStepper(tables, limits), beam=1), tables, strict=True
    ):
        assert (one.tokens, one.finished) == (best.tokens, best.finished)
        check_scores(table, one, 0.0)
        node = 0
        for token in [*one.tokens, *([EOS] if one.finished else [])]:
            assert token == int(table[node].argmax())
            node = node * vocabulary + token + 1


def test_finished_outputs_leave_the_batch() -> None:
    """Three inputs: the first ends at once, the second after one token, the third never."""
    tables = torch.zeros(3, 1 + 3 + 9, 3, dtype=torch.float64)
    tables[0] = torch.tensor([0.98, 0.015, 0.005])
    tables[1, 0] = torch.tensor([0.015, 0.005, 0.98])
    tables[1, 1:] = tables[0, 0]
    tables[2] = torch.tensor([1e-6, 0.7, 0.3])
    tables = tables.log()
    stepper = TreeStepper(tables, [3, 3, 3])
    assert [one.tokens for one in greedy(stepper)] == [[], [2], [1, 1, 1]]
    assert stepper.rows_seen == [3, 2, 1]
    stepper = TreeStepper(tables, [3, 3, 3])
    found = beam_search(stepper, beam=2, alpha=0.6)
    assert [one[0].tokens for one in found[:2]] == [[], [2]]
    # one row for each input, then two; after two steps the first two have two finished hypotheses each
    assert stepper.rows_seen == [3, 6, 2]


def test_limits_by_hand() -> None:
    """One token that never ends: the limit cuts it off. Limits of 0 write nothing."""
    tables = torch.tensor([-9.0, -0.01], dtype=torch.float64).expand(2, 31, 2)
    for limits in ([2, 0], [0, 2], [0, 0]):
        expected = [([1] * limit, False) for limit in limits]
        assert [(one.tokens, one.finished) for one in greedy(TreeStepper(tables, limits))] == expected
        found = [one[0] for one in beam_search(TreeStepper(tables, limits), beam=1)]
        assert [(one.tokens, one.finished) for one in found] == expected
    assert [one.tokens for one in greedy(TreeStepper(tables, [4, 4]), max_length=3)] == [[1, 1, 1]] * 2
    assert greedy(TreeStepper(tables[:0], [])) == []
    assert beam_search(TreeStepper(tables[:0], [])) == []


def test_the_length_penalty_by_hand() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(100, 0.0) == 1.0
    # To end at once: -1. After six tokens: 6 x -0.2 - 0.3 = -1.5, divided by (5 + 7) / 6: -0.75.
    table = torch.tensor([-9.0, -0.2], dtype=torch.float64).repeat(1, sum(2**d for d in range(8)), 1)
    table[0, 0, EOS] = -1.0
    node = 0
    for _ in range(6):
        node = node * 2 + 2
    table[0, node, EOS] = -0.3
    for alpha, best, score in ((0.0, 0, -1.0), (1.0, 6, -0.75)):
        found = beam_search(TreeStepper(table, [7]), beam=8, alpha=alpha, early_stop=False)[0][0]
        assert len(found.tokens) == best
        assert found.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: beam_search(s, beam=0), "beam=0"),
        (lambda s: beam_search(s, alpha=-1.0), "alpha=-1.0"),
        (lambda s: greedy(s, max_length=0), "max_length=0"),
        (lambda s: sample(s, temperature=0.0), "temperature=0.0.*greedy"),
        (lambda s: sample(s, top_k=0), "top_k=0"),
        (lambda s: sample(s, top_p=0.0), "top_p=0.0"),
        (lambda s: sample(s, top_p=1.5), "top_p=1.5"),
    ],
)
def test_options_out_of_range(call: Any, message: str) -> None:
    stepper = TreeStepper(random_tables(0, 1, 2, 1), [1])
    with pytest.raises(ValueError, match=message):
        call(stepper)
    assert not stepper.rows_seen


def test_support_of_top_k_and_top_p_by_hand() -> None:
    p = torch.tensor([0.125, 0.5, 0.125, 0.25], dtype=torch.float64)

    def support(**options: Any) -> dict[int, float]:
        kept = keep_likely(p.log(), **options).exp()
        return {index: round(float(one), 12) for index, one in enumerate(kept) if one > 0}

    assert support() == {0: 0.125, 1: 0.5, 2: 0.125, 3: 0.25}
    assert support(top_k=1) == {1: 1.0}
    assert support(top_k=3) == {
        0: round(1 / 7, 12),
        1: round(4 / 7, 12),
        3: round(2 / 7, 12),
    }  # ties: lower id
    assert support(top_k=9, top_p=1.0) == support()
    assert support(top_p=1e-9) == {1: 1.0}
    assert support(top_p=0.5) == {1: 1.0}
    assert support(top_p=0.51) == support(top_p=0.75) == {1: round(2 / 3, 12), 3: round(1 / 3, 12)}
    assert set(support(top_p=0.76)) == set(support(top_p=0.875)) == {0, 1, 3}
    assert set(support(top_p=0.876)) == {0, 1, 2, 3}
    # of the two most probable, renormalised to 2/3 and 1/3, the first alone has 0.6
    assert support(top_k=2, top_p=0.6) == {1: 1.0}
    # their squares, renormalised: 1 : 16 : 1 : 4
    assert support(temperature=0.5) == {
        0: round(1 / 22, 12),
        1: round(16 / 22, 12),
        2: round(1 / 22, 12),
        3: round(4 / 22, 12),
    }


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.integers(1, 13),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 15),
    top_p=st.none() | st.floats(0.05, 1.0),
)
def test_what_is_kept_is_the_fewest_that_will_do(
    seed: int, vocabulary: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    generator = torch.Generator().manual_seed(seed)
    log_p = torch.randn(3, vocabulary, generator=generator, dtype=torch.float64).log_softmax(-1)
    kept = keep_likely(log_p, temperature=temperature, top_k=top_k, top_p=top_p)
    for before, after in zip(log_p, kept, strict=True):
        tempered = (before / temperature).softmax(0).tolist()
        order = sorted(range(vocabulary), key=lambda token: -tempered[token])[:top_k]
        mass = sum(tempered[token] for token in order)
        expected, have = [], 0.0
        for token in order:
            if top_p is not None and have / mass >= top_p and expected:
                break
            expected.append(token)
            have += tempered[token]
        assert sorted(expected) == after.isfinite().nonzero().flatten().tolist()
        for token in expected:
            assert float(after[token].exp()) == pytest.approx(tempered[token] / have)


def test_samples_come_as_often_as_they_should() -> None:
    """20,000 outputs of one token or none. By Hoeffding's inequality a share misses its probability by more
    than sqrt(ln(2 / 1e-9) / 2n) once in 10^9 runs."""
    n, p = 20_000, torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    bound = math.sqrt(math.log(2e9) / (2 * n))
    tables = p.log().expand(n, 1, 4)
    options: list[tuple[dict[str, Any], list[float]]] = [
        ({}, p.tolist()),
        ({"top_k": 2}, [0, 0, 3 / 7, 4 / 7]),
        ({"top_p": 0.8}, [0, 2 / 9, 3 / 9, 4 / 9]),
        ({"temperature": 0.5}, [x * x / 0.3 for x in p.tolist()]),
    ]
    for given_options, expected in options:
        generator = torch.Generator().manual_seed(17)
        drawn = sample(TreeStepper(tables, [1] * n), generator=generator, **given_options)
        counts = [0] * 4
        for one in drawn:
            token = EOS if one.finished else one.tokens[0]
            counts[token] += 1
            assert one.log_probability == pytest.approx(math.log(p[token]))  # the model's, whatever was cut
        for count, share in zip(counts, expected, strict=True):
            assert abs(count / n - share) <= bound
            assert (count > 0) == (share > 0)


def test_samples_repeat_from_a_seed() -> None:
    tables = random_tables(3, 5, 4, 4)

    def draw(seed: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        return [one.tokens for one in sample(TreeStepper(tables, [4] * 5), generator=generator)]

    assert draw(1) == draw(1)
    assert any(draw(1) != draw(seed) for seed in range(2, 5))


def test_ctc_by_hand() -> None:
    """Repeats become one unless a blank stands between; frames beyond the length aren't read."""
    frames = torch.tensor([[0, 1, 1, 0, 1, 2, 2], [3, 3, 0, 0, 2, 1, 1]])
    logits = torch.nn.functional.one_hot(frames, 5).float()
    assert ctc_greedy(logits) == [[1, 1, 2], [3, 2, 1]]
    assert ctc_greedy(logits, torch.tensor([4, 0])) == [[1], []]
    assert ctc_greedy(logits, blank=1) == [[0, 0, 2], [3, 0, 2]]
    with pytest.raises(ValueError, match="batch, frames, V"):
        ctc_greedy(logits[0])
