"""ROUGE by rouge-score: words that outputs and references share, stemmed (Lin 2004)."""

from __future__ import annotations

from collections.abc import Sequence

from headwise.applications.intervals import bootstrap_interval
from headwise.training.extras import need

KINDS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rouge_l"}


def each(outputs: Sequence[str], references: Sequence[str]) -> dict[str, list[float]]:
    """F1 of each output, in percent: of single words, of pairs, of the longest common subsequence."""
    scorer = need("rouge_score.rouge_scorer", "summarization").RougeScorer(list(KINDS), use_stemmer=True)
    found: dict[str, list[float]] = {name: [] for name in KINDS.values()}
    for output, reference in zip(outputs, references, strict=True):
        for kind, score in scorer.score(reference, output).items():
            found[KINDS[kind]].append(100 * score.fmeasure)
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def rouge_1(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Mean ROUGE-1 F1 in percent."""
    return mean(each(outputs, references)["rouge1"])


def scores_of(
    outputs: Sequence[str], references: Sequence[str], *, bootstrap: bool = True
) -> dict[str, float]:
    """Mean F1 of each kind in percent, and 95% bootstrap intervals."""
    figures: dict[str, float] = {}
    for name, values in each(outputs, references).items():
        figures[name] = mean(values)
        if bootstrap and len(values) > 1:
            figures[f"{name}_low"], figures[f"{name}_high"] = bootstrap_interval(values, mean)
    return figures
