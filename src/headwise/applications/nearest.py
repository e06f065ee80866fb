"""The text that is most similar to another one, by the letters they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

LETTERS = 4


class Nearest:
    """Finds, for a text, the most similar of many.

    Texts are compared by their sequences of n characters, blanks among them and one at each end, whatever
    their case. A sequence g that stands c times in a text, and in df of the N texts, weighs

        w_g = c log(N / df)

    and similarity is the cosine between weights (the vector space model of Salton, Wong and Yang 1975).

    Args:
        texts: to be found.
        n: characters of a sequence.
    """

    def __init__(self, texts: Sequence[str], *, n: int = LETTERS) -> None:
        self.n = n
        self.size = len(texts)
        numbers: dict[str, int] = {}  # of each sequence
        rows: list[int] = []
        which: list[int] = []
        times: list[int] = []
        for row, text in enumerate(texts):
            for sequence, count in self._counted(text).items():
                rows.append(row)
                which.append(numbers.setdefault(sequence, len(numbers)))
                times.append(count)
        order = torch.tensor(which, dtype=torch.int64).argsort(stable=True)
        self._rows = torch.tensor(rows, dtype=torch.int64)[order]  # the texts of each sequence, side by side
        found = torch.tensor(which, dtype=torch.int64)[order]
        in_texts = torch.bincount(found, minlength=len(numbers))
        self._ends = in_texts.cumsum(0).tolist()
        self._rarity = (self.size / in_texts.double()).log().tolist()
        weights = torch.tensor(times, dtype=torch.float64)[order] * torch.tensor(self._rarity).double()[found]
        squares = torch.zeros(self.size, dtype=torch.float64).index_add(0, self._rows, weights**2)
        self._weights = weights / squares.sqrt().clamp(min=1e-12)[self._rows]
        self._numbers = numbers

    def find(self, texts: Iterable[str]) -> list[int]:
        """Which text is the most similar to each; of equally similar ones, the first.

        Raises:
            ValueError: there are none.
        """
        if not self.size:
            raise ValueError("there are no texts to find")
        return [int(self.similarities(text).argmax()) for text in texts]

    def similarities(self, text: str) -> Tensor:
        """Cosines with all texts, float64 [N], from 0 to 1."""
        scores = torch.zeros(self.size, dtype=torch.float64)
        length = 0.0
        for sequence, count in self._counted(text).items():
            number = self._numbers.get(sequence)
            weight = count * (math.log(self.size) if number is None else self._rarity[number])
            length += weight**2
            if number is not None and weight:
                there = slice(self._ends[number - 1] if number else 0, self._ends[number])
                scores.index_add_(0, self._rows[there], self._weights[there], alpha=weight)
        return scores / max(math.sqrt(length), 1e-12)

    def _counted(self, text: str) -> Counter[str]:
        framed = f" {' '.join(text.lower().split())} "
        return Counter(framed[i : i + self.n] for i in range(max(1, len(framed) - self.n + 1)))
