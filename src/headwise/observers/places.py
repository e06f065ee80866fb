"""Mass on chosen keys: at a fixed offset, or of a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.observers.base import Block, Observer, chosen, short


@dataclass(frozen=True, eq=False)
class Offset(Observer):
    """What a query gives to the key d positions further on.

        O_i = sum over j with pos_j = pos_i + d of P_ij

    d = -1: the previous token, +1: the next one, 0: itself. Result: [*batch, heads, q_len], unit:
    share of 1; 0 where no such key exists, or it may not be attended to. Averaged over queries it is
    the score of a "previous token head". Several keys at one position (packed documents that all start
    at 0) count together.

    Args:
        d: the offset in positions.

    Source: Clark et al. 2019, section 3.1; Voita et al. 2019, section 5.1 (positional heads).
    """

    d: int

    def __post_init__(self) -> None:
        if isinstance(self.d, bool) or not isinstance(self.d, int):
            raise TypeError(f"Offset(d) takes an int (-1: previous token), got {self.d!r}")
        if abs(self.d) >= 2**61:  # added to a position it would wrap around
            raise ValueError(f"Offset(d) got {self.d}: no two positions are that far apart")

    @property
    def name(self) -> str:
        return self.label("offset", self.d)

    def measure(self, block: Block) -> tuple[Tensor]:
        there = block.k_pos == block.q_pos + self.d  # [B or 1, 1, r, c]
        return (torch.where(there, block.weights, 0.0).sum(-1),)


@dataclass(frozen=True, eq=False)
class Mass(Observer):
    """What a query gives to some keys together: the first token, separators, any classes of tokens.

        M_ic = sum over j of class c of P_ij

    Result: [*batch, heads, q_len], or [*batch, heads, q_len, classes] with `classes`; unit: share of
    1. A query that may attend to nothing: 0.

    Args:
        keys: which keys. Without `classes`: indices (a sequence of int or an integer tensor [n];
            negative ones from the end), or a bool tensor [*batch, k_len] or [k_len]. With `classes`: an
            integer tensor [*batch, k_len] or [k_len] holding the class of each key, -1 for none.
        classes: number of classes, or their names in order.
        called: a name of your own, to tell two of a kind apart.

    Raises:
        TypeError, ValueError: keys of another type; indices, classes or shapes that don't fit the call.

    Source: Clark et al. 2019, section 3.2 ([SEP], punctuation); Xiao et al. 2023 (attention sinks: the
    first tokens, `Mass(range(4))`); Voita et al. 2019, section 5.3 (rare tokens).
    """

    keys: Sequence[int] | Tensor
    classes: int | Sequence[str] | None = None
    called: str | None = None

    def __post_init__(self) -> None:
        keys = self.keys
        whole = isinstance(keys, Tensor) and not (keys.is_floating_point() or keys.is_complex())
        if isinstance(keys, Tensor) and not whole:
            raise TypeError(
                f"Mass(keys) takes a bool tensor, or an integer one, got {keys.dtype}; weighted sums of "
                "keys are a job for an observer of your own"
            )
        if self.classes is not None:
            if not isinstance(keys, Tensor) or keys.dtype == torch.bool or keys.ndim == 0:
                raise TypeError("Mass(keys, classes=...) needs keys as an integer tensor [*batch, k_len]")
            if isinstance(self.classes, str):
                raise TypeError(f"Mass(classes) takes a number or several names, got {self.classes!r}")
            if isinstance(self.classes, bool) or not isinstance(self.classes, int | Sequence):
                raise TypeError(f"Mass(classes) takes a number or several names, got {self.classes!r}")
            if not isinstance(self.classes, int):
                object.__setattr__(self, "classes", tuple(self.classes))  # the caller's own may change
            if self.count < 1:
                raise ValueError(f"Mass(classes) needs one class or more, got {self.classes!r}")
        elif isinstance(keys, Tensor) and keys.dtype != torch.bool and keys.ndim != 1:
            raise ValueError(
                f"Mass(keys) without classes takes indices as an integer tensor [n], got "
                f"{tuple(keys.shape)}; pass classes=... if it holds the class of each key, or a bool tensor"
            )

    @property
    def count(self) -> int:
        """Number of classes; 1 without `classes`."""
        if self.classes is None:
            return 1
        return self.classes if isinstance(self.classes, int) else len(self.classes)

    @property
    def name(self) -> str:
        if self.called is not None:
            return self.label("mass", self.called)
        if isinstance(self.classes, int):
            return self.label("mass", f"{self.classes} classes")
        if self.classes is not None:
            return self.label("mass", *self.classes)
        if isinstance(self.keys, Tensor):
            return self.label("mass", "mask" if self.keys.dtype == torch.bool else short(self.keys.tolist()))
        return self.label("mass", short(self.keys))

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        super().check(batch=batch, heads=heads, q_len=q_len, k_len=k_len)
        indices = self._indices()
        if indices is not None:
            chosen(indices, k_len, what="keys", owner=self.name)
            return
        keys = self._tensor()
        whole = (*batch, k_len)
        shape = (1,) * (len(whole) - keys.ndim) + tuple(keys.shape)
        fits = len(shape) == len(whole) and shape[-1] == k_len
        if not fits or any(have not in (1, size) for have, size in zip(shape, whole, strict=True)):
            raise ValueError(
                f"{self.name}: keys of shape {tuple(keys.shape)} don't fit [*batch, k_len] = {whole}"
            )
        if self.classes is not None and keys.numel():
            low, high = int(keys.min()), int(keys.max())
            if low < -1 or high >= self.count:
                raise ValueError(
                    f"{self.name}: classes run from {low} to {high}, but must lie in -1 .. {self.count - 1}"
                )

    def measure(self, block: Block) -> tuple[Tensor]:
        indices = self._indices()
        if indices is not None:
            wanted = torch.tensor([int(key) % block.k_len for key in indices], device=block.cols.device)
            return (block.weights[..., torch.isin(block.cols, wanted)].sum(-1),)
        keys = self._tensor().to(block.cols.device)
        if keys.ndim > 1:
            keys = keys.expand(*block.batch, block.k_len).reshape(block.weights.shape[0], block.k_len)
        keys = keys[..., block.cols]  # [c] or [B, c]
        if self.classes is None:
            member = keys if keys.ndim == 1 else keys[:, None, None, :]
            return (torch.where(member, block.weights, 0.0).sum(-1),)
        classes = torch.arange(self.count, device=keys.device)
        member = (keys.unsqueeze(-1) == classes).to(block.weights.dtype)  # [c, n] or [B, c, n]
        mass = block.weights.flatten(1, 2) @ member  # [B, H r, n]
        return (mass.reshape(*block.weights.shape[:-1], self.count),)

    def classes_of(self, batch: tuple[int, ...], k_len: int) -> Tensor:
        """The class of every key, [B or 1, k_len] (B: all of `batch` as one): -1 for none; without `classes`,
        0 for those that are asked for."""
        indices = self._indices()
        if indices is not None:
            found = torch.full((1, k_len), -1, dtype=torch.int32, device="cpu")
            places = torch.tensor([int(key) % k_len for key in indices], dtype=torch.int64, device="cpu")
            return found.index_fill_(1, places, 0)
        keys = self._tensor().to("cpu")
        if self.classes is None:
            keys = keys.long() - 1
        return keys.expand(*batch, k_len).reshape(-1, k_len) if keys.ndim > 1 else keys.reshape(1, k_len)

    def _indices(self) -> Sequence[int] | None:
        """The keys where they are given as indices."""
        if not isinstance(self.keys, Tensor):
            return self.keys
        if self.classes is None and self.keys.dtype != torch.bool:
            return [int(key) for key in self.keys.tolist()]
        return None

    def _tensor(self) -> Tensor:
        """The keys where every key of the call has its own entry."""
        if not isinstance(self.keys, Tensor):
            raise TypeError(f"{self.name}: keys are indices, not a tensor")
        return self.keys
