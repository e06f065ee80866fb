"""BLEU and chrF of outputs of which next to nothing is right."""

import pytest

from headwise.applications.bleu import scores_of

pytest.importorskip("sacrebleu")


def test_intervals_of_outputs_that_are_nearly_all_wrong() -> None:
    references = [f"{word} stands here" for word in ("one", "two", "six", "ten", "red")]
    outputs = ["", "", "one", "", ""]  # most bootstrap samples have no letter in common with the references
    figures, _ = scores_of(outputs, references)
    assert figures["bleu"] == pytest.approx(0, abs=0.1)
    assert 0 < figures["chrf"] < 10
    assert figures["chrf_low"] <= figures["chrf"] <= figures["chrf_high"]
