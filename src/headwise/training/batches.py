"""Batches of examples of similar length and at most so many tokens, the same for the same seed and epoch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

BatchT = TypeVar("BatchT")
Lengths = int | tuple[int, ...]


def token_batches(
    lengths: Sequence[Lengths],
    max_tokens: int,
    *,
    max_examples: int | None = None,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
) -> list[list[int]]:
    """Put examples of similar length together; each batch takes at most `max_tokens` cells, padding counted.

    "Sentence pairs were batched together by approximate sequence length" (*Attention Is All You Need*, 5.1).
    Examples are sorted by length (the longest side first, then the others), in random order where lengths
    are equal, cut into batches in which number of examples x longest length <= max_tokens holds on every
    side, and the batches are shuffled. The order depends on seed and epoch alone, so a run that is resumed
    finds the same batches.

    Args:
        lengths: of each example: one number, or one for each side such as (source, target)
        max_tokens: cells of a batch on each side
        max_examples: at most so many examples in a batch
        shuffle: False keeps the order of lengths, for validation

    Returns:
        Batches as lists of example numbers; every example stands in exactly one.

    Raises:
        ValueError: max_tokens or max_examples below 1; an example longer than max_tokens (it is named).
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}: it must be at least 1")
    if max_examples is not None and max_examples < 1:
        raise ValueError(f"max_examples is {max_examples}: it must be at least 1")
    sides = [(length,) if isinstance(length, int) else tuple(length) for length in lengths]
    for number, of_one in enumerate(sides):
        if max(of_one) > max_tokens:
            raise ValueError(
                f"example {number} has {max(of_one)} tokens and a batch may hold {max_tokens}: "
                "raise max_tokens, or cut or leave out long examples"
            )
    order = list(range(len(sides)))
    chance = random.Random(f"headwise {seed} {epoch}")  # a string: no two (seed, epoch) share a stream
    if shuffle:
        chance.shuffle(order)
    order.sort(key=lambda number: (max(sides[number]), sides[number]))
    batches: list[list[int]] = []
    batch: list[int] = []
    longest: tuple[int, ...] = ()
    for number in order:
        grown = tuple(map(max, longest, sides[number])) if batch else sides[number]
        full = max(grown) * (len(batch) + 1) > max_tokens or len(batch) == max_examples
        if batch and full:
            batches.append(batch)
            batch, grown = [], sides[number]
        batch.append(number)
        longest = grown
    if batch:
        batches.append(batch)
    if shuffle:
        chance.shuffle(batches)
    return batches


class Collated(Generic[BatchT]):
    """Batches made one by one from a plan of example numbers. A run that is resumed starts in the middle.

    Args:
        plan: example numbers of each batch, such as `token_batches` gives
        collate: makes a batch of example numbers: pads them, makes tensors
    """

    def __init__(self, plan: Sequence[Sequence[int]], collate: Callable[[Sequence[int]], BatchT]) -> None:
        self.plan = plan
        self.collate = collate

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[BatchT]:
        return self.starting_at(0)

    def starting_at(self, number: int) -> Iterator[BatchT]:
        """The batches from this one on; those before are never made."""
        for examples in self.plan[number:]:
            yield self.collate(examples)
