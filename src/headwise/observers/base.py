"""What can be said of a head, block by block.

An observer never sees the whole weight matrix. It is handed `Block`s: some query rows against all
the keys that they may attend to. Its `measure` returns what the block says, and the pieces are
joined by `joins`: "rows" lays them one after another along q_len, "sum" adds them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor


@dataclass(frozen=True)
class Block:
    """Some rows of every head's attention, over the keys that any of them may attend to.

    Shapes (B: all batch dimensions as one; H: query heads; r: rows; c: columns):
        scores:  [B, H, r, c], float32 or better: scale, softcap and bias applied; -inf where masked
        weights: [B, H, r, c], the probabilities before dropout; 0 where masked; a row that may attend
                 to nothing is all 0
        lse:     [B, H, r], log-sum-exp of the row (sink included); -inf for a row that may attend to
                 nothing (the sink where there is one)
        q_pos, k_pos: int64 positions, [B or 1, 1, r, 1] and [B or 1, 1, 1, c]
        rows, cols, heads: int64 [r], [c] and [H]: indices of the queries, keys and heads in the call
    """

    scores: Tensor
    weights: Tensor
    lse: Tensor
    q_pos: Tensor
    k_pos: Tensor
    rows: Tensor
    cols: Tensor
    heads: Tensor
    batch: tuple[int, ...]
    q_len: int
    k_len: int

    def over_keys(self, values: Tensor, *, fill: float = 0.0) -> Tensor:
        """Spread [..., c] over all keys, [..., k_len]: `fill` at the keys that this block leaves out."""
        if self.cols.shape[0] == self.k_len:
            return values
        whole = values.new_full((*values.shape[:-1], self.k_len), fill)
        return whole.index_copy(-1, self.cols, values)


@dataclass(frozen=True, eq=False)
class Observer:
    """Base of all observers.

    Args:
        rows: query indices to look at, negative ones from the end (None: all). Only these are computed.
        heads: heads to look at (None: all). Only these are computed.
    """

    joins: ClassVar[Literal["rows", "sum"]] = "rows"

    rows: Sequence[int] | None = field(default=None, kw_only=True)
    heads: Sequence[int] | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """What the result is called: `seen.<name>`; parameters in brackets tell two of a kind apart."""
        raise NotImplementedError

    def measure(self, block: Block) -> tuple[Tensor, ...]:
        """What this block says.

        joins == "rows": each tensor is [B, H, r, ...]. joins == "sum": each is [B, H, ...], and the
        sum over all blocks is the whole.
        """
        raise NotImplementedError

    def finish(self, parts: tuple[Tensor, ...], *, q_len: int) -> object:
        """From the joined tensors to the result. B is unfolded to [*batch] afterwards, in every
        tensor of the result (a tensor, or a NamedTuple of tensors)."""
        return parts[0]

    def check(self, *, batch: tuple[int, ...], heads: int, q_len: int, k_len: int) -> None:
        """Raise ValueError or TypeError where this observer doesn't fit the call."""
        chosen(self.rows, q_len, what="rows", owner=self.name)
        chosen(self.heads, heads, what="heads", owner=self.name)

    def label(self, kind: str, *parameters: object) -> str:
        """`kind`, with the parameters and the chosen rows and heads in brackets: "offset[-1]",
        "weights[rows=0..3,heads=1]"."""
        parts = [str(parameter) for parameter in parameters]
        for what, indices in (("rows", self.rows), ("heads", self.heads)):
            if indices is not None:
                parts.append(f"{what}={short(indices)}")
        return f"{kind}[{','.join(parts)}]" if parts else kind


def require_observers(observers: Sequence[object]) -> None:
    """Raise TypeError for what is no observer, ValueError for two of one name."""
    if not isinstance(observers, Sequence) or isinstance(observers, str):
        raise TypeError(f"expected a list of observers, such as [Entropy()], got {observers!r}")
    names: set[str] = set()
    for observer in observers:
        if isinstance(observer, type) and issubclass(observer, Observer):
            name = observer.__name__
            raise TypeError(f"expected observers, got the class {name}: write {name}()")
        if not isinstance(observer, Observer):
            raise TypeError(f"expected observers such as Entropy(), got {observer!r}")
        if observer.name in names:
            raise ValueError(
                f"two observers are called {observer.name!r}: ask for it once, or give one a name of its own"
            )
        names.add(observer.name)


def chosen(indices: Sequence[int] | None, size: int, *, what: str, owner: str) -> tuple[int, ...] | None:
    """Indices counted from 0, in the order asked for. None stands for all.

    Raises:
        TypeError: indices that are not a sequence of int.
        ValueError: an index outside -size .. size - 1, or one that is named twice.
    """
    if indices is None:
        return None
    try:
        _counted(indices)
        numbers = [_whole(index) for index in indices]
    except TypeError:
        raise TypeError(
            f"{owner}: {what} must be a sequence of int such as ({what}=(0, 2)), got {indices!r}"
        ) from None
    for index in numbers:
        if not -size <= index < size:
            raise ValueError(f"{owner}: {what} asks for {index}, but there are {size} {what}")
    counted = tuple(index % size for index in numbers)
    if len(set(counted)) < len(counted):
        twice = next(index for place, index in enumerate(counted) if index in counted[:place])
        raise ValueError(f"{owner}: {what} names {twice} twice; name each once")
    return counted


def _counted(indices: object) -> None:
    """Raise TypeError for what has no order, or can be read only once: it would be empty the next time."""
    if not hasattr(indices, "__len__") or not hasattr(indices, "__getitem__"):
        raise TypeError


def _whole(index: object) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError
    return int(index.__index__())


def short(indices: Sequence[int]) -> str:
    """Indices as text: "0..3" for a run of them, else "0 2 7"."""
    try:
        _counted(indices)
        numbers = [int(index) for index in indices]
    except (TypeError, ValueError):
        return repr(indices)
    first, last = (numbers[0], numbers[-1]) if numbers else (0, 0)
    if len(numbers) > 2 and numbers == list(range(first, last + 1)):
        return f"{first}..{last}"
    return " ".join(map(str, numbers))
