"""Where the queries and keys of one attention call stand.

A mask speaks about positions ("a query may attend to keys that are not newer than itself").
A kernel works on indices (row 3 of the queries it was handed). `Frame` holds both, so that a
mask needs no other knowledge of the call, and a kernel none of the mask.
"""

from __future__ import annotations

from math import prod
from typing import Literal, get_args

import torch
from torch import Tensor

Index = slice | Tensor  # rows or columns of the score matrix: a slice, or an int64 tensor of indices

Align = Literal["end", "start"]  # the last query is the newest key, or the first query is the first key
ALIGNS = get_args(Align)


class Frame:
    """Sizes and positions of one attention call. Leave it as it is made.

    Shapes:
        q_pos: int64 [q_len] or [*batch, q_len]. Position of each query.
        k_pos: int64 [k_len] or [*batch, k_len]. Position of each key; below 0 marks a cache slot
            that holds no key yet.

    Where positions count up from `q_start` or `k_start` (None where they are given as a tensor), questions
    about a block need no look at a tensor (nor a wait for the device), and none is made until it is asked
    for: most calls ask for none.
    """

    __slots__ = ("_device", "_k_pos", "_q_pos", "batch", "heads", "k_len", "k_start", "q_len", "q_start")

    def __init__(
        self,
        batch: tuple[int, ...],
        heads: int,
        q_len: int,
        k_len: int,
        *,
        q_start: int | None = None,
        k_start: int | None = None,
        q_pos: Tensor | None = None,
        k_pos: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        """Positions count up from q_start and k_start, or are the tensors given."""
        self.batch = batch
        self.heads = heads
        self.q_len = q_len
        self.k_len = k_len
        self.q_start = q_start if q_pos is None else None
        self.k_start = k_start if k_pos is None else None
        self._q_pos = q_pos
        self._k_pos = k_pos
        self._device = device

    def __repr__(self) -> str:
        return (
            f"Frame(batch={self.batch}, heads={self.heads}, "
            f"queries {_said(self.q_len, self.q_start)}, keys {_said(self.k_len, self.k_start)})"
        )

    @staticmethod
    def of(
        batch: tuple[int, ...],
        heads: int,
        q_len: int,
        k_len: int,
        *,
        align: Align = "end",
        q_pos: Tensor | None = None,
        k_pos: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Frame:
        """Frame with default positions: keys are 0 .. k_len - 1, and the queries end where the keys
        end (`align="end"`: the last query is the newest key) or start where they start ("start")."""
        if align not in ALIGNS:
            raise ValueError(
                f'align={align!r}: queries are aligned with the keys at their "end" (the last query is the '
                'newest key) or their "start"'
            )
        q_start = k_len - q_len if align == "end" else 0
        return Frame(
            batch,
            heads,
            q_len,
            k_len,
            q_start=q_start,
            k_start=0,
            q_pos=q_pos,
            k_pos=k_pos,
            device=device,
        )

    @property
    def q_pos(self) -> Tensor:
        if self._q_pos is None:
            self._q_pos = self._counted(self.q_start, self.q_len)
        return self._q_pos

    @property
    def k_pos(self) -> Tensor:
        if self._k_pos is None:
            self._k_pos = self._counted(self.k_start, self.k_len)
        return self._k_pos

    @property
    def device(self) -> torch.device:
        if isinstance(self._device, torch.device) and self._k_pos is None:
            return self._device
        return self.k_pos.device

    @property
    def by_batch(self) -> bool:
        """Whether batch entries have positions of their own."""
        return any(pos is not None and pos.ndim > 1 for pos in (self._q_pos, self._k_pos))

    def given(self) -> tuple[Tensor, ...]:
        """The positions that were given as tensors."""
        q = () if self.q_start is not None else (self.q_pos,)
        return q if self.k_start is not None else (*q, self.k_pos)

    def q(self, rows: Index) -> Tensor:
        """Positions of the queries `rows`, broadcastable to [*batch, heads, rows, keys]."""
        return as_rows(self.q_pos[..., rows])

    def k(self, cols: Index) -> Tensor:
        """Positions of the keys `cols`, broadcastable to [*batch, heads, rows, keys]."""
        return as_cols(self.k_pos[..., cols])

    def q_ends(self, block: int) -> tuple[Tensor, Tensor]:
        """Lowest and highest position in each block of queries, both broadcastable to
        [*batch, heads, query blocks, key blocks]."""
        low, high = self._ends(self.q_start, self.q_len, block) or block_ends(self.q_pos, block)
        return as_rows(low), as_rows(high)

    def k_ends(self, block: int) -> tuple[Tensor, Tensor]:
        """Lowest and highest position in each block of keys, both broadcastable to
        [*batch, heads, query blocks, key blocks]."""
        low, high = self._ends(self.k_start, self.k_len, block) or block_ends(self.k_pos, block)
        return as_cols(low), as_cols(high)

    def select(self, index: slice) -> Frame:
        """The frame of some batch entries: all batch dimensions become one, of which `index` is kept."""
        frame = self.sized((len(range(*index.indices(prod(self.batch)))),), self.heads)
        if self.q_start is None:
            frame._q_pos = select_batch(self.q_pos, 1, self.batch, index)
        if self.k_start is None:
            frame._k_pos = select_batch(self.k_pos, 1, self.batch, index)
        return frame

    def sized(self, batch: tuple[int, ...], heads: int) -> Frame:
        """The same positions for another batch and number of heads."""
        sizes = batch, heads, self.q_len, self.k_len
        frame = Frame(*sizes, q_start=self.q_start, k_start=self.k_start, device=self._device)
        frame._q_pos, frame._k_pos = self._q_pos, self._k_pos
        return frame

    def _counted(self, start: int | None, length: int) -> Tensor:
        if start is None:
            raise ValueError("a frame needs a start or a tensor of positions, for queries and for keys")
        return torch.arange(start, start + length, device=self._device)

    def _ends(self, start: int | None, length: int, block: int) -> tuple[Tensor, Tensor] | None:
        if start is None:
            return None
        low = torch.arange(start, start + length, block, device=self._device)
        return low, (low + (block - 1)).clamp_(max=start + length - 1)


def as_rows(values: Tensor) -> Tensor:
    """A value per query, [q] or [*batch, q], to [q, 1] or [*batch, 1, q, 1], to meet a block of scores."""
    return _over_heads(values).unsqueeze(-1)


def as_cols(values: Tensor) -> Tensor:
    """A value per key, [k] or [*batch, k], to [1, k] or [*batch, 1, 1, k], to meet a block of scores."""
    return _over_heads(values).unsqueeze(-2)


def select_batch(tensor: Tensor, trailing: int, batch: tuple[int, ...], index: slice) -> Tensor:
    """Fold the batch dimensions of `tensor` into one and keep the entries `index` of it.

    A tensor [*batch (or ones, or nothing), then `trailing` more dimensions (or fewer of them)]. One
    that is the same for the whole batch comes back without batch dimensions.
    """
    cut = max(tensor.ndim - trailing, 0)
    lead, rest = tensor.shape[:cut], tensor.shape[cut:]
    if all(size == 1 for size in lead):
        return tensor.reshape(rest)
    return tensor.expand(*batch, *rest).reshape(prod(batch), *rest)[index]


def block_ends(values: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """Lowest and highest value in each run of `block` along the last dimension; the last run may be
    shorter. [..., n] -> twice [..., ceil(n / block)]."""
    if not values.shape[-1]:
        return values, values
    spare = -values.shape[-1] % block
    if spare:  # the last value, repeated, moves neither end
        values = torch.cat([values, values[..., -1:].expand(*values.shape[:-1], spare)], dim=-1)
    low, high = torch.aminmax(values.unflatten(-1, (-1, block)), dim=-1)
    return low, high


def _said(length: int, start: int | None) -> str:
    where = "at positions given" if start is None else f"from position {start}"
    return f"{length} {where}"


def _over_heads(values: Tensor) -> Tensor:
    return values.unsqueeze(-2) if values.ndim > 1 else values  # [*batch, n] -> [*batch, 1, n]
