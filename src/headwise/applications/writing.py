"""Texts written by an encoder-decoder for texts that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from headwise.applications.tokens import Tokens, pad
from headwise.models.decoding import Hypothesis, beam_search, greedy

CELLS = 4096
"""Tokens of a batch of inputs, padding counted, times the beam."""


def encode_sources(texts: Sequence[str], tokens: Tokens, *, cut: int | None = None) -> list[list[int]]:
    """Ids of each text with its [EOS]; with `cut`, at most so many, the end of the text left out."""
    room = None if cut is None else cut - 1
    return [[*ids[:room], tokens.eos_id] for ids in tokens.encode(texts)]


@torch.no_grad()
def write(
    model: Any,
    sources: Sequence[Sequence[int]],
    *,
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    max_length: int | None = None,
    cells: int = CELLS,
) -> list[list[Hypothesis]]:
    """Hypotheses for each source, best first; inputs of similar length are read together.

    Args:
        model: has `stepper(source, source_lengths)`; in eval mode
        sources: ids of each input, with its [EOS]
        beam: 1 is greedy
        max_extra, max_length: see `headwise.models.decoding.greedy`
    """
    if beam < 1:
        raise ValueError(f"beam is {beam}: the number of hypotheses for each input must be 1 or more")
    device = next(model.parameters()).device
    found: list[list[Hypothesis]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
    while order:
        count = max(1, cells // (len(sources[order[0]]) * beam))
        numbers, order = order[:count], order[count:]
        source, lengths = pad([sources[number] for number in numbers])
        stepper = model.stepper(source.to(device), lengths.to(device))
        if beam == 1:
            done = [[one] for one in greedy(stepper, max_extra=max_extra, max_length=max_length)]
        else:
            done = beam_search(stepper, beam=beam, alpha=alpha, max_extra=max_extra, max_length=max_length)
        for number, hypotheses in zip(numbers, done, strict=True):
            found[number] = hypotheses
    return found


def write_texts(
    model: Any,
    tokens: Tokens,
    texts: Sequence[str],
    *,
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    max_length: int | None = None,
    cut: int | None = None,
) -> list[str]:
    """The best output for each text; for an empty one, an empty one. `cut`: see `encode_sources`."""
    stripped = [text.strip() for text in texts]
    full = [number for number, text in enumerate(stripped) if text]
    sources = encode_sources([stripped[number] for number in full], tokens, cut=cut)
    hypotheses = write(model, sources, beam=beam, alpha=alpha, max_extra=max_extra, max_length=max_length)
    written = [""] * len(texts)
    for number, text in zip(full, tokens.decode([one[0].tokens for one in hypotheses]), strict=True):
        written[number] = text
    return written
