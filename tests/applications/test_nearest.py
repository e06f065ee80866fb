"""The most similar text: by hand, and against a dense computation."""

import math
import random

import pytest
import torch

from headwise.applications.nearest import Nearest


def dense(texts, query, n):
    """Cosines from whole matrices."""
    framed = [f" {' '.join(text.lower().split())} " for text in [*texts, query]]
    grams = [[one[i : i + n] for i in range(max(1, len(one) - n + 1))] for one in framed]
    known = sorted({gram for some in grams for gram in some})
    counts = torch.tensor([[some.count(gram) for gram in known] for some in grams]).double()
    frequency = (counts[:-1] > 0).sum(0)
    weights = counts * (len(texts) / frequency.clamp(min=1).double()).log()
    weights = weights / weights.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return weights[:-1] @ weights[-1]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_matrices_say(n, seed):
    chance = random.Random(seed)
    texts = ["".join(chance.choices("aAb c", k=chance.randint(0, 13))) for _ in range(11)]
    nearest = Nearest(texts, n=n)
    for query in ("", "ab", "d", " aB\tcab ", *texts):
        expected = dense(texts, query, n)
        found = nearest.similarities(query)
        torch.testing.assert_close(found, expected)
        assert expected[nearest.find([query])[0]] == pytest.approx(float(expected.max()))


def test_by_hand():
    """Two texts: "a", "x" and the blank are in both and weigh nothing; "b" weighs log 2, as does "z"."""
    nearest = Nearest(["xaa", "xab"], n=1)
    assert nearest.similarities("b").tolist() == pytest.approx([0, 1])
    assert nearest.similarities("bz").tolist() == pytest.approx([0, 1 / math.sqrt(2)])
    assert nearest.find(["b", "a", "q"]) == [1, 0, 0]  # of equals, the first


def test_case_and_blanks_count_for_nothing():
    texts = ["Open a file", "Close the window", "Print a page"]
    assert Nearest(texts).find(["close  THE\nwindow", "opened files"]) == [1, 0]


def test_without_texts():
    with pytest.raises(ValueError, match="no texts"):
        Nearest([]).find(["a"])
