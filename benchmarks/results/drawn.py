"""Which heads are drawn for a run, and on which input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import headwise as hw
from benchmarks.results import pictures
from benchmarks.results.examples import Choice, Images, Sounds
from benchmarks.results.heads import KINDS, Head, kind_of, layer_of

LONGEST = 60
"""Tokens of a string that is drawn."""


@torch.no_grad()
def weights(examples: Any, number: int) -> dict[tuple[str, int], Tensor]:
    """Weights [heads, queries, keys] of one example, by kind and layer."""
    with hw.observe(examples.model, hw.Weights()) as seen:
        examples.run(number)
    return {(kind_of(name), layer_of(name)): one["weights"][0] for name, one in seen.items()}


def draw_heads(examples: Any, choice: Choice, heads: Sequence[Head], path: Path) -> str:
    """Draw some heads on some of the outputs that are shown; what is to be seen, in a sentence, or "" where
    the model has nothing to draw."""
    if isinstance(examples, Images):
        return _draw_images(examples, choice, heads, path)
    cross = [head for head in heads if head.kind == KINDS[2]]
    if not cross:
        return ""
    surest = max(cross, key=lambda head: head.surest)
    inline = max(cross, key=lambda head: head.order)
    middle = choice.rows[len(choice.rows) // 2][1]
    if isinstance(examples, Sounds):
        middle = longest_readable({number: len(examples.labels(number)[1]) for _, number in choice.rows})
    read, written = examples.labels(middle)[0], examples.labels(middle)[1]
    found = weights(examples, middle)
    last = max(layer for kind, layer in found if kind == KINDS[2])
    panels = [(f"{_name(surest)}, the surest", found[KINDS[2], surest.layer][surest.head])]
    if inline.name != surest.name:
        panels.append((f"{_name(inline)}, most in order", found[KINDS[2], inline.layer][inline.head]))
    panels.append((f"mean of layer {last}", found[KINDS[2], last].mean(0)))
    copying = [head for head in heads if head.kind == KINDS[3]]
    panels += [("where it would copy", found[one.kind, one.layer][one.head]) for one in copying]
    pictures.alignment(path, panels, written, read)
    where = "the frames of the sound" if isinstance(examples, Sounds) else "the input"
    word = next(word for word, number in choice.rows if number == middle)
    return (
        f"Cross-attention on the example called *{word}* above: from each token, as it is written, to "
        f"{where}. Drawn are the head whose largest weight is the largest on average, the one that "
        "keeps most to the order of the input, and the mean of the last layer"
        + (", each by its own largest weight" if isinstance(examples, Sounds) else "")
        + ("; the last picture shows where the pointer would copy from." if copying else ".")
    )


def longest_readable(lengths: Mapping[int, int]) -> int:
    """Of some strings, given by number and length, the longest that fits a picture, or the shortest of all.
    (One digit has no order to be seen, and nobody reads 300 lines.)"""
    fitting = {number: length for number, length in lengths.items() if length <= LONGEST}
    return max(fitting, key=lengths.__getitem__) if fitting else min(lengths, key=lengths.__getitem__)


def _draw_images(examples: Images, choice: Choice, heads: Sequence[Head], path: Path) -> str:
    numbers = [number for _, number in choice.rows]
    narrow = min(heads, key=lambda head: head.entropy)
    found = [weights(examples, number) for number in numbers]
    last = max(layer for _, layer in found[0])
    shape = examples.model.config.grid
    kind = KINDS[0]
    rows = [
        (f"mean of layer {last}", [one[kind, last].mean(0)[0, 1:].reshape(shape) for one in found]),
        (_name(narrow), [one[kind, narrow.layer][narrow.head][0, 1:].reshape(shape) for one in found]),
    ]
    titles = [
        f"{examples.outputs[number]['reference']}, taken for {examples.outputs[number]['output']}"
        for number in numbers
    ]
    images = [examples.pixels(number)[0] for number in numbers]
    pictures.attention_over_images(path, images, rows, titles)
    return (
        "The five examples above, and what the class token attends to in them: the mean of the last layer's "
        "heads, and the narrowest head of all. Redder patches receive more, each picture by its own largest."
    )


def _name(head: Head) -> str:
    return f"head {head.name}"
