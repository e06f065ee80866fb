"""Which words the spelling check lets pass, and which it doesn't."""

from __future__ import annotations

import pytest

from headwise.study.check.spelling import unknown_words


@pytest.mark.parametrize(
    "prose",
    [
        "The colour of the neighbour's centre is labelled, normalised and analysed.",
        "Regularisation minimises; we summarise, recognise, and optimise behaviour.",
        "Don't, isn't, we'll, they've, it's, couldn't, who'd, the authors' claims.",
        "BLEU, LSTMs, PyTorch, MultiHead, d_model, x2, 3x, headwise.attention and https://example.org/teh.",
        "A well-known, unscaled, recomputed, non-linear sub-layer.",
        "{{fact:a.bcd}} tokens; a/teh path; teh_name",
        "",
    ],
)
def test_good_words_pass(prose: str) -> None:
    assert unknown_words(prose) == []


@pytest.mark.parametrize(
    ("prose", "words"),
    [
        ("Teh lamp recieves a seperate signal.", ["Teh", "recieves", "seperate"]),
        ("Normalisaton of the coulor.", ["Normalisaton", "coulor"]),
        ("A well-knwon thing.", ["knwon"]),
        ("It dosen't.", ["dosen't"]),
        ("The Vrumm's lamp.", ["Vrumm"]),
    ],
)
def test_bad_words_are_found(prose: str, words: list[str]) -> None:
    assert unknown_words(prose) == words


def test_own_words_count_as_they_are_capitalised() -> None:
    own = {"softmaxy", "Vrumm"}
    assert unknown_words("Softmaxy softmaxy Vrumm", own) == []
    assert unknown_words("vrumm", own) == ["vrumm"]
