"""Masks of one's own: what the base class gives, and what `check_mask` finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

import headwise as hw
from headwise.masks import (
    Allow,
    Causal,
    Documents,
    Frame,
    KeyLengths,
    Mask,
    Prefix,
    ValidKeys,
    Window,
    check_mask,
)
from headwise.masks.base import tile_codes


@dataclass(frozen=True, eq=False, repr=False)
class Every(Mask):
    """Keys whose distance is a multiple of n."""

    n: int

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return (q_pos - k_pos) % self.n == 0


def test_a_mask_needs_nothing_but_allow() -> None:
    check_mask(Every(3))
    check_mask(Causal() & ~Every(3) | Window(2, 0))
    q, k, v = torch.randn(2, 3, 23, 5), torch.randn(2, 3, 29, 5), torch.randn(2, 3, 29, 5)
    mask = Every(3) & Causal()
    dense = mask.dense(Frame.of((2,), 3, 23, 29))
    for kernel in ("torch", "tiled", "reference"):
        torch.testing.assert_close(
            hw.attention(q, k, v, mask=mask, kernel=kernel), hw.attention(q, k, v, mask=Allow(dense))
        )
    assert mask.count(Frame.of((), 1, 3, 3)).tolist() == [3]


@dataclass(frozen=True, eq=False, repr=False)
class Numbers(Mask):
    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return (q_pos >= k_pos).float()


def test_allow_must_return_bool() -> None:
    q = torch.randn(2, 3, 5, 7)
    with pytest.raises(TypeError, match=r"Numbers.allow returned a torch.float32 tensor.*are a Bias"):
        hw.attention(q, q, q, mask=Causal() & Numbers())
    with pytest.raises(TypeError, match="returned a"):
        check_mask(Numbers())


@pytest.mark.parametrize(
    "mask",
    [
        Causal(),
        ValidKeys(),
        Window(3, 2),
        Window(None, 0),
        KeyLengths(17),
        KeyLengths([11, 0, 23]),
        Prefix([5, 2]),
        Documents(torch.arange(29) // 5, torch.arange(23) // 5),
        Allow(torch.rand(2, 1, 23, 29, generator=torch.Generator().manual_seed(0)) < 0.5),
        (Causal() | Prefix([7, 3])) & ~Window(2, 0),
    ],
    ids=lambda mask: mask.describe(),
)
def test_every_kind_keeps_its_promises(mask: Mask) -> None:
    check_mask(mask)


@dataclass(frozen=True, eq=False, repr=False)
class Boastful(Every):
    """Says FULL where it is not."""

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        (q_low, _), (k_low, _) = frame.q_ends(q_block), frame.k_ends(k_block)
        same = (q_low - k_low) % self.n == 0
        return tile_codes(torch.ones_like(same), same)


@dataclass(frozen=True, eq=False, repr=False)
class Shy(Every):
    """Says EMPTY where it is not."""

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        return super().tiles(frame, q_block, k_block) * 0


@dataclass(frozen=True, eq=False, repr=False)
class Short(Every):
    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        return super().tiles(frame, q_block, k_block)[..., :1, :]


@dataclass(frozen=True, eq=False, repr=False)
class Counting(Every):
    """Looks at where in the block a pair is."""

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return torch.arange(k_pos.shape[-1]).expand(torch.broadcast_shapes(q_pos.shape, k_pos.shape)) < 5


class Loose(Mask):
    def __init__(self, n: int) -> None:
        object.__setattr__(self, "n", n)

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return k_pos <= q_pos


@dataclass(frozen=True, eq=False, repr=False)
class Untold(Mask):
    bound: Tensor

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return k_pos < self.bound[:, None, None, None]


@dataclass(frozen=True, eq=False, repr=False)
class Mistold(Untold):
    """Its tensor has a batch dimension, which is said to be something else."""

    trailing: ClassVar[Mapping[str, int]] = {"bound": 1}


@dataclass(frozen=True, eq=False, repr=False)
class Wide(Mask):
    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return (k_pos <= q_pos).expand(7, 3, -1, -1)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Boastful(3), ValueError, r"Boastful.tiles\(frame, 3, 4\) says FULL of rows 0 to 2 and keys"),
        (lambda: Shy(3), ValueError, r"Shy.tiles.* says EMPTY of rows 0 to 2 and keys 0 to 3"),
        (lambda: Short(3), ValueError, r"int8 \[1, 8\]: expected int8 \[\.\.\., 8, 8\]"),
        (lambda: Counting(3), ValueError, "differs from the same rows and columns"),
        (lambda: Loose(3), TypeError, r"Loose holds n, which are no fields"),
        (lambda: Untold(torch.tensor([3, 5])), TypeError, "trailing` doesn't name: bound"),
        (lambda: Mistold(torch.tensor([3, 5])), ValueError, r"by_batch\(\) is False, and batch entry 1"),
        (lambda: Wide(), ValueError, r"doesn't broadcast to .* = \[2, 3, 23, 29\]"),
        (lambda: torch.ones(2, 3).bool(), TypeError, "mask is a Tensor"),
    ],
)
def test_broken_promises_are_found(make: Callable[[], Mask], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_mask(make())


def test_a_frame_of_ones_own() -> None:
    check_mask(KeyLengths(torch.tensor([[3], [5]])), Frame.of((2, 7), 3, 11, 13))
    with pytest.raises(ValueError, match="k_len = 13"):
        check_mask(KeyLengths(17), Frame.of((), 1, 11, 13))


def test_lengths_in_a_list_are_the_tensor() -> None:
    q = torch.randn(3, 2, 11, 5)
    for kind in (KeyLengths, Prefix):
        listed, tensor = kind([11, 5, 0]), kind(torch.tensor([11, 5, 0]))
        assert torch.equal(hw.attention(q, q, q, mask=listed), hw.attention(q, q, q, mask=tensor))
        assert listed.describe() == tensor.describe()
        with pytest.raises(ValueError, match="batch entry 1 has -5"):
            kind((11, -5, 0))
