"""A baseline that has no model: the translation of the training sentence that is most alike."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import torch

from headwise.applications.text_files import Pairs


def nearest(texts: Sequence[str], training: Pairs) -> list[str]:
    """For each text, the target whose source has the most words in common: the largest cosine of tf-idf.

    Of equals the first; for a text without a known word, the first of all.
    """
    rows = [Counter(_words(source)) for source in training.sources]
    spread = Counter(word for row in rows for word in row)
    number = {word: place for place, word in enumerate(spread)}
    idf = {word: math.log(len(rows) / count) + 1.0 for word, count in spread.items()}
    known = _matrix(rows, number, idf)
    found: list[str] = []
    for start in range(0, len(texts), 64):
        asked = [Counter(_words(text)) for text in texts[start : start + 64]]
        alike = torch.sparse.mm(known, _matrix(asked, number, idf).to_dense().T)  # [training, 64]
        found += [training.targets[place] for place in alike.argmax(0).tolist()]
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _matrix(rows: Sequence[Counter[str]], number: dict[str, int], idf: dict[str, float]) -> torch.Tensor:
    """Unit rows [rows, words], sparse."""
    places: list[tuple[int, int]] = []
    values: list[float] = []
    for place, row in enumerate(rows):
        weights = {number[word]: count * idf[word] for word, count in row.items() if word in number}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        places += [(place, word) for word in weights]
        values += [weight / length for weight in weights.values()]
    indices = torch.tensor(places, dtype=torch.int64).reshape(-1, 2).T
    size = (len(rows), len(number))
    return torch.sparse_coo_tensor(indices, torch.tensor(values), size, check_invariants=True).coalesce()
