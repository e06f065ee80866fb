"""Any mask at all, written out as a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from headwise.masks.base import Mask, tile_codes
from headwise.masks.fits import broadcasts, dtype_name, readable, same_device
from headwise.masks.frame import Frame, Index


@dataclass(frozen=True, eq=False, repr=False)
class Allow(Mask):
    """The pairs that a bool tensor names: True means may attend.

    Rows and columns of the tensor are those of the call, whatever positions they stand at. Prefer the
    other masks where they can say it: this one alone takes q_len x k_len memory.

    Args:
        tensor: bool, broadcastable to [*batch, heads, q_len, k_len] from the right, as torch
            broadcasts. A padding mask of valid keys [batch, k_len] is `Allow(valid[:, None, None, :])`,
            one per batch entry [batch, q_len, k_len] is `Allow(tensor[:, None])`.

    Raises:
        TypeError: no bool tensor; the message says how to turn it into one, or into a bias.
        ValueError: at the call: a shape that doesn't broadcast, another device.
    """

    trailing: ClassVar[Mapping[str, int]] = {"tensor": 3}

    tensor: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.tensor, Tensor):
            raise TypeError(f"Allow takes a bool tensor, got {type(self.tensor).__name__}")
        if self.tensor.dtype != torch.bool:
            raise TypeError(_not_bool(self.tensor))

    @classmethod
    def from_ignored(cls, ignored: Tensor) -> Allow:
        """From the opposite polarity: True means ignore, as in `attn_mask` and `key_padding_mask` of
        torch.nn.MultiheadAttention (the latter needs `[:, None, None, :]`)."""
        if not isinstance(ignored, Tensor):
            raise TypeError(f"Allow.from_ignored takes a bool tensor, got {type(ignored).__name__}")
        if ignored.dtype != torch.bool:
            raise TypeError(_not_bool(ignored))
        return cls(~ignored)

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        raise TypeError("Allow speaks of rows and columns, not of positions: use block(frame, rows, cols)")

    def block(self, frame: Frame, rows: Index, cols: Index) -> Tensor:
        return _pick(_pick(_matrix(self.tensor), -2, rows), -1, cols)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        # As bytes, whose minimum and maximum are ten times faster than all() and any().
        low = high = _matrix(self.tensor).view(torch.uint8)
        for dim, block in ((-2, q_block), (-1, k_block)):  # rows first: whole rows are compared at once
            low, high = _runs(low, dim, block, torch.amin), _runs(high, dim, block, torch.amax)
        codes = tile_codes(high.bool(), low.bool())
        q_tiles, k_tiles = -(-frame.q_len // q_block), -(-frame.k_len // k_block)
        return codes.expand(*codes.shape[:-2], q_tiles, k_tiles)

    def check(self, frame: Frame) -> None:
        target = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
        if not broadcasts(self.tensor.shape, target):
            raise ValueError(
                f"Allow: a tensor of shape {list(self.tensor.shape)} doesn't broadcast to "
                f"[*batch, heads, q_len, k_len] = {list(target)}{_hint(tuple(self.tensor.shape), frame)}"
            )
        same_device("Allow", self.tensor, frame)

    def describe(self) -> str:
        return f"allow (a tensor of shape {list(self.tensor.shape)})"

    def natural_lengths(self) -> tuple[int | None, int | None]:
        q_len, k_len = _matrix(self.tensor).shape[-2:]
        return (q_len if q_len != 1 else None), (k_len if k_len != 1 else None)


def _matrix(tensor: Tensor) -> Tensor:
    """The tensor with at least two dimensions."""
    while tensor.ndim < 2:
        tensor = tensor.unsqueeze(0)
    return tensor


def _pick(tensor: Tensor, dim: int, index: Index) -> Tensor:
    if tensor.shape[dim] == 1:  # one line for all of them
        return tensor
    if isinstance(index, Tensor):
        return tensor.index_select(dim, index)
    return tensor[..., index, :] if dim == -2 else tensor[..., index]


def _runs(values: Tensor, dim: int, block: int, fold: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Each run of `block` along `dim` folded into one value; the last run may be shorter. A dimension
    of size 1 stands for all lines and stays."""
    length = values.shape[dim]
    if length <= 1:
        return values
    whole = length - length % block
    parts = []
    if whole:
        parts.append(fold(values.narrow(dim, 0, whole).unflatten(dim, (-1, block)), dim))
    if length - whole:
        rest = fold(values.narrow(dim, whole, length - whole), dim)
        parts.append(rest.unsqueeze(dim))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _hint(shape: tuple[int, ...], frame: Frame) -> str:
    """What the tensor was probably meant to be."""
    sizes = (frame.q_len, frame.k_len)
    if len(frame.batch) == 1 and shape == (*frame.batch, frame.k_len):
        return ". One row of keys per batch entry is tensor[:, None, None, :]"
    if len(frame.batch) == 1 and shape == (*frame.batch, *sizes):
        return ". One matrix per batch entry is tensor[:, None]"
    if len(shape) == 3 and shape == (frame.heads * _product(frame.batch), *sizes):
        unfolded = ", ".join(str(n) for n in (*frame.batch, frame.heads))
        return f". Batch and heads folded into one dimension are tensor.unflatten(0, ({unfolded}))"
    if shape[-2:] == sizes[::-1] and sizes[0] != sizes[1]:
        return ". Its last two dimensions are swapped: tensor.mT"
    return ": give it those dimensions, or 1 where it is the same for all"


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _not_bool(tensor: Tensor) -> str:
    got = f"Allow takes a bool tensor, True means may attend; got {dtype_name(tensor)} "
    got += f"of shape {list(tensor.shape)}"
    ways = (
        "pass tensor.bool() if 1 means may attend, or ~tensor.bool() if 1 means ignore "
        "(as in torch.nn.MultiheadAttention)"
    )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return f"{got}: {ways}"
    if readable(tensor) and tensor.numel():
        if ((tensor == 0) | (tensor == 1)).all():
            return (
                f"{got}, which holds only 0 and 1 and so looks like a mask, not like numbers to add: {ways}"
            )
        if ((tensor == 0) | (tensor <= torch.finfo(tensor.dtype).min / 2)).all():
            return (
                f"{got}, which holds only 0 and -inf (or numbers near it): "
                "pass Allow(tensor == 0), or bias=tensor to have it added to the scores"
            )
    return f"{got}: numbers that are added to scores go to bias=; if it is a mask, {ways}"
