"""BLEU and chrF by sacrebleu: cased, on whole texts, with the tokenisation that it fixes itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwise.training.extras import need

SAMPLES = 1000


def corpus_bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """BLEU in percent (Papineni et al. 2002; Post 2018)."""
    metrics = need("sacrebleu.metrics", "translation")
    return float(metrics.BLEU().corpus_score(list(outputs), [list(references)]).score)


def scores_of(
    outputs: Sequence[str], references: Sequence[str], *, bootstrap: bool = True
) -> tuple[dict[str, float], str]:
    """BLEU and chrF in percent, their 95% intervals (Koehn 2004), and sacrebleu's signature.

    Args:
        bootstrap: False leaves out the intervals. One text has none.
    """
    metrics = need("sacrebleu.metrics", "translation")
    samples = SAMPLES if bootstrap and len(outputs) > 1 else 1
    figures: dict[str, float] = {}
    signature = ""
    for name, metric in (("bleu", metrics.BLEU()), ("chrf", _with_floats(metrics.CHRF()))):
        found: Any = metric.corpus_score(list(outputs), [list(references)], n_bootstrap=samples)
        figures[name] = float(found.score)
        if samples > 1:
            figures[f"{name}_low"] = float(found._mean - found._ci)
            figures[f"{name}_high"] = float(found._mean + found._ci)
        if name == "bleu":
            signature = f"sacrebleu {metric.get_signature()}"
    return figures, signature


def _with_floats(metric: Any) -> Any:
    """The metric, with floats as scores. chrF gives 0.0 where nothing is right and numpy's float32 elsewhere;
    Python's statistics refuses the mean of a bootstrap that meets both."""
    compute = metric._compute_score_from_stats

    def computed(stats: Any) -> Any:
        found = compute(stats)
        found.score = float(found.score)
        return found

    metric._compute_score_from_stats = computed
    return metric
