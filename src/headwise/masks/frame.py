"""Where the queries and keys of one attention call stand.

A mask speaks about positions ("a query may attend to keys that are not newer than itself").
A kernel works on indices (row 3 of the queries it was handed). `Frame` holds both, so that a
mask needs no other knowledge of the call, and a kernel none of the mask.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor

Index = slice | Tensor  # rows or columns of the score matrix: a slice, or an int64 tensor of indices


@dataclass(frozen=True)
class Frame:
    """Sizes and positions of one attention call.

    Shapes:
        q_pos: int64 [q_len] or [*batch, q_len]. Position of each query.
        k_pos: int64 [k_len] or [*batch, k_len]. Position of each key; below 0 marks a cache slot
            that holds no key yet.

    `q_start` and `k_start` are set by `of` where it made the positions itself: they are then known to
    be start, start + 1, ..., and questions about a block need no look at the tensor (nor a wait for
    the device). Any other frame, also one made by `dataclasses.replace`, has None there and is looked
    at closely.
    """

    batch: tuple[int, ...]
    heads: int
    q_len: int
    k_len: int
    q_pos: Tensor
    k_pos: Tensor
    q_start: int | None = field(default=None, init=False, compare=False, repr=False)
    k_start: int | None = field(default=None, init=False, compare=False, repr=False)

    @staticmethod
    def of(
        batch: tuple[int, ...],
        heads: int,
        q_len: int,
        k_len: int,
        *,
        align: str = "end",
        q_pos: Tensor | None = None,
        k_pos: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Frame:
        """Frame with default positions: keys are 0 .. k_len - 1, and the queries end where the keys
        end (`align="end"`: the last query is the newest key) or start where they start ("start")."""
        if align not in ("end", "start"):
            raise ValueError(
                f'align={align!r}: queries are aligned with the keys at their "end" (the last query is the '
                'newest key) or their "start"'
            )
        k_start = 0 if k_pos is None else None
        q_start = (k_len - q_len if align == "end" else 0) if q_pos is None else None
        return Frame.starting(
            batch,
            heads,
            q_len,
            k_len,
            q_start=q_start,
            k_start=k_start,
            q_pos=q_pos,
            k_pos=k_pos,
            device=device,
        )

    @staticmethod
    def starting(
        batch: tuple[int, ...],
        heads: int,
        q_len: int,
        k_len: int,
        *,
        q_start: int | None,
        k_start: int | None,
        q_pos: Tensor | None = None,
        k_pos: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Frame:
        """Frame whose positions count up from q_start and k_start, or are the tensors given."""
        if q_pos is None and q_start is not None:
            q_pos = torch.arange(q_start, q_start + q_len, device=device)
        else:
            q_start = None
        if k_pos is None and k_start is not None:
            k_pos = torch.arange(k_start, k_start + k_len, device=device)
        else:
            k_start = None
        if q_pos is None or k_pos is None:
            raise ValueError("a frame needs a start or a tensor of positions, for queries and for keys")
        frame = Frame(batch, heads, q_len, k_len, q_pos, k_pos)
        object.__setattr__(frame, "q_start", q_start)
        object.__setattr__(frame, "k_start", k_start)
        return frame

    @property
    def device(self) -> torch.device:
        return self.k_pos.device

    def q(self, rows: Index) -> Tensor:
        """Positions of the queries `rows`, broadcastable to [*batch, heads, rows, keys]."""
        return _over_heads(self.q_pos[..., rows]).unsqueeze(-1)

    def k(self, cols: Index) -> Tensor:
        """Positions of the keys `cols`, broadcastable to [*batch, heads, rows, keys]."""
        return _over_heads(self.k_pos[..., cols]).unsqueeze(-2)

    def q_ends(self, block: int) -> tuple[Tensor, Tensor]:
        """Lowest and highest position in each block of queries, both broadcastable to
        [*batch, heads, query blocks, key blocks]."""
        low, high = _ends(self.q_pos, self.q_start, self.q_len, block)
        return _over_heads(low).unsqueeze(-1), _over_heads(high).unsqueeze(-1)

    def k_ends(self, block: int) -> tuple[Tensor, Tensor]:
        """Lowest and highest position in each block of keys, both broadcastable to
        [*batch, heads, query blocks, key blocks]."""
        low, high = _ends(self.k_pos, self.k_start, self.k_len, block)
        return _over_heads(low).unsqueeze(-2), _over_heads(high).unsqueeze(-2)

    def select(self, index: slice) -> Frame:
        """The frame of some batch entries: all batch dimensions become one, of which `index` is kept."""
        q_pos = select_batch(self.q_pos, 1, self.batch, index)
        k_pos = select_batch(self.k_pos, 1, self.batch, index)
        count = len(range(*index.indices(prod(self.batch))))
        frame = Frame((count,), self.heads, self.q_len, self.k_len, q_pos, k_pos)
        object.__setattr__(frame, "q_start", self.q_start)
        object.__setattr__(frame, "k_start", self.k_start)
        return frame


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


def _ends(pos: Tensor, start: int | None, length: int, block: int) -> tuple[Tensor, Tensor]:
    if start is None:
        return block_ends(pos, block)
    low = torch.arange(start, start + length, block, device=pos.device)
    return low, (low + (block - 1)).clamp_(max=start + length - 1)


def _over_heads(pos: Tensor) -> Tensor:
    return pos.unsqueeze(-2) if pos.ndim > 1 else pos  # [*batch, n] -> [*batch, 1, n]
