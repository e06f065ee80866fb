"""Questions that several masks ask of their tensors, and the words of their errors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.masks.frame import Frame

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
SHOWN = 8  # how many values or entries a message lists


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def readable(tensor: Tensor) -> bool:
    """May values be read? Not while a graph is traced, nor from a tensor without storage."""
    if torch.compiler.is_compiling() or tensor.device.type == "meta":
        return False
    return not (
        isinstance(tensor, torch._subclasses.FakeTensor) or torch._C._functorch.is_batchedtensor(tensor)
    )


def counts(name: str, lengths: object) -> None:
    """Refuse what is not a count or a tensor of counts."""
    if isinstance(lengths, Tensor):
        if lengths.dtype in INTEGERS:
            return
        if lengths.dtype == torch.bool:
            raise TypeError(
                f"{name} takes int lengths, got a bool tensor of shape {list(lengths.shape)}; if it is True "
                f"at valid keys, pass Allow(valid[..., None, None, :]), or {name}(valid.sum(-1)) if the "
                "padding is all at the end"
            )
        raise TypeError(
            f"{name} takes int lengths, got {dtype_name(lengths)} of shape {list(lengths.shape)}: "
            "pass lengths.long()"
        )
    if isinstance(lengths, bool) or not isinstance(lengths, int | torch.SymInt):
        raise TypeError(
            f"{name} takes an int, an int tensor or a list of ints, got {type(lengths).__name__} {lengths!r}"
        )


def listed(name: str, lengths: list[int] | tuple[int, ...]) -> Tensor:
    """int64 [n] of n counts."""
    wrong = [one for one in lengths if isinstance(one, bool) or not isinstance(one, int | torch.SymInt)]
    if wrong:
        raise TypeError(f"{name} takes ints, got {wrong[0]!r} of type {type(wrong[0]).__name__} in a list")
    return torch.tensor(lengths, dtype=torch.int64)


def same_device(name: str, tensor: Tensor, frame: Frame) -> None:
    if tensor.device != frame.device:
        raise ValueError(
            f"{name} is on {tensor.device} and the queries and keys are on {frame.device}: "
            f"pass mask.to({str(frame.device)!r})"
        )


def broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Does `shape` broadcast to exactly `target`?"""
    if len(shape) > len(target):
        return False
    ends = zip(reversed(shape), reversed(target), strict=False)
    return all(have in (1, want) for have, want in ends)


def batch_like(name: str, what: str, shape: Sequence[int], batch: tuple[int, ...]) -> None:
    if not broadcasts(shape, batch):
        raise ValueError(
            f"{name}: {what} of shape {list(shape)} must broadcast to the batch dimensions {list(batch)}: "
            "one value per batch entry"
        )


def highest_position(pos: Tensor, start: int | None, length: int) -> int | None:
    """The highest position in a call, or None where finding out would wait for a device (or where
    there is none)."""
    if start is not None:
        return start + length - 1
    if pos.device.type != "cpu" or not readable(pos) or not pos.numel():
        return None
    return int(pos.max())


def some_values(values: Tensor) -> str:
    """The first values of a tensor, for a description."""
    if not readable(values):
        return f"of shape {list(values.shape)}"
    if values.ndim == 0:
        return str(values.item())
    flat = values.reshape(-1)
    shown = ", ".join(str(value) for value in flat[:SHOWN].tolist())
    more = flat.numel() - SHOWN
    return f"[{shown}, and {more} more]" if more > 0 else f"[{shown}]"


def entry_names(values: Tensor, wrong: Tensor) -> str:
    """Names the entries of `values` where `wrong` holds, for an error message."""
    if values.ndim == 0:
        return f"the length is {values.item()}"
    places = wrong.nonzero().tolist()
    shown = ", ".join(
        f"{place[0] if len(place) == 1 else tuple(place)} has {values[tuple(place)].item()}"
        for place in places[:SHOWN]
    )
    more = f", and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"batch entry {shown}{more}"
