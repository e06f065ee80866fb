"""Batches for a loop: from the middle of an epoch, on a device, in parts for several processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


def map_tensors(batch: Any, function: Callable[[Tensor], Any]) -> Any:
    """The same batch with `function` applied to each tensor in dicts, lists, tuples and dataclasses."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {name: map_tensors(value, function) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(value, function) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map_tensors(value, function) for value in batch)
    if is_dataclass(batch) and not isinstance(batch, type):
        mapped = {field.name: map_tensors(getattr(batch, field.name), function) for field in fields(batch)}
        return replace(batch, **mapped)
    return batch


def skip(batches: Iterable[Any], number: int) -> Iterator[Any]:
    """The batches from this one on; those before aren't made where `starting_at` can help it."""
    if hasattr(batches, "starting_at"):
        found: Iterator[Any] = batches.starting_at(number)
        return found
    return itertools.islice(iter(batches), number, None)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on a device; nothing is copied where it is there already."""
    return map_tensors(batch, lambda tensor: tensor.to(device, non_blocking=True))


def examples(batch: Any) -> int:
    """How many examples a batch holds: the first dimension of its tensors.

    Raises:
        ValueError: no tensors, or first dimensions that differ.
    """
    counts: set[int] = set()
    map_tensors(batch, lambda tensor: counts.add(tensor.shape[0] if tensor.ndim else -1))
    if len(counts) != 1 or -1 in counts:
        raise ValueError(
            f"a batch's tensors have first dimensions {sorted(counts)}: to be shared out to processes "
            "all must count the examples; or give the batch a method part(rank, world)"
        )
    return counts.pop()


def part(batch: Any, rank: int, world: int) -> tuple[Any, bool]:
    """The share of process `rank` of `world`, in order and as equal as can be, and whether it is empty.

    With fewer examples than processes some get nothing. They still have to call the model, since the others
    wait for their gradients: they get the first example, marked as empty, whose loss counts for nothing.
    """
    if world == 1:
        return batch, False
    if hasattr(batch, "part"):
        return batch.part(rank, world), False
    count = examples(batch)
    start, stop = count * rank // world, count * (rank + 1) // world
    if start == stop:
        return _rows(batch, count, 0, 1), True
    return _rows(batch, count, start, stop), False


def _rows(batch: Any, count: int, start: int, stop: int) -> Any:
    """Rows of tensors; lists that hold one thing for each example (texts) are cut likewise."""
    if isinstance(batch, Tensor):
        return batch[start:stop]
    if isinstance(batch, Mapping):
        return {name: _rows(value, count, start, stop) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_rows(value, count, start, stop) for value in batch))
    if isinstance(batch, (list, tuple)):
        if any(isinstance(value, (Tensor, Mapping, list, tuple)) or is_dataclass(value) for value in batch):
            return type(batch)(_rows(value, count, start, stop) for value in batch)
        return batch[start:stop] if len(batch) == count else batch
    if is_dataclass(batch) and not isinstance(batch, type):
        cut = {field.name: _rows(getattr(batch, field.name), count, start, stop) for field in fields(batch)}
        return replace(batch, **cut)
    return batch
