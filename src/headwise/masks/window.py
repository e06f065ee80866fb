"""Local attention, and the ways in which other libraries count a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.masks.base import Mask, tile_codes
from headwise.masks.frame import Frame


class _Unsaid:
    """Stands where a number must be given."""

    def __repr__(self) -> str:
        return "(must be said)"


_UNSAID: Any = _Unsaid()
_FARTHEST = 2**61  # positions and distances up to here add up within 64 bits


@dataclass(frozen=True, eq=False, repr=False)
class Window(Mask):
    """A query attends to its neighbours: -before <= k_pos - q_pos <= after.

    The numbers count neighbours, the query's own position comes on top: `Window(127, 0)` is 128 keys.
    None is unbounded. The `from_...` methods translate other libraries' numbers, which differ by one
    between libraries.

    Args:
        before: how many keys before the query's own position, or None for all of them.
        after: how many keys after it, or None for all of them.

    Raises:
        ValueError: a count is negative.
        TypeError: a count is missing, or not an int.
    """

    before: int | None = _UNSAID
    after: int | None = _UNSAID

    def __post_init__(self) -> None:
        if self.before is _UNSAID or self.after is _UNSAID:
            raise TypeError(_missing(self.before if self.after is _UNSAID else self.after))
        for name, value in (("before", self.before), ("after", self.after)):
            if value is None:
                continue
            _whole(f"Window({name}=...)", value)
            if value < 0:
                raise ValueError(
                    f"Window({name}={value}): a window counts neighbours, 0 or more; for an unbounded side "
                    "write None, and for a (left, right) pair in which -1 means unbounded use "
                    "Window.from_flash_attention"
                )

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        distance, before, after = k_pos - q_pos, _reach(self.before), _reach(self.after)
        if before is not None and after is not None:
            return (distance >= -before) & (distance <= after)
        if before is not None:
            return distance >= -before
        if after is not None:
            return distance <= after
        return torch.ones_like(distance, dtype=torch.bool)

    def tiles(self, frame: Frame, q_block: int, k_block: int) -> Tensor:
        q_low, q_high = frame.q_ends(q_block)
        k_low, k_high = frame.k_ends(k_block)
        before, after = _reach(self.before), _reach(self.after)
        some = every = None  # the distances of a tile lie between k_low - q_high and k_high - q_low
        if before is not None:
            some, every = k_high >= q_low - before, k_low >= q_high - before
        if after is not None:
            not_beyond, none_beyond = k_low <= q_high + after, k_high <= q_low + after
            some = not_beyond if some is None else some & not_beyond
            every = none_beyond if every is None else every & none_beyond
        if some is None or every is None:
            some = every = torch.ones(
                torch.broadcast_shapes(q_low.shape, k_low.shape), dtype=torch.bool, device=frame.device
            )
        return tile_codes(some, every)

    def describe(self) -> str:
        return f"window(before={self.before}, after={self.after})"

    def __repr__(self) -> str:
        return f"Window(before={self.before}, after={self.after})"

    @classmethod
    def from_flash_attention(cls, window_size: Sequence[int], *, causal: bool = False) -> Window:
        """flash-attn's `window_size=(left, right)`: counts neighbours, -1 is unbounded. With its
        `causal=True` nothing after the query is seen, whatever `right` says."""
        left, right = _pair("from_flash_attention", window_size)
        return cls(_unbounded(left), 0 if causal else _unbounded(right))

    @classmethod
    def from_torch_varlen(cls, window_size: Sequence[int], *, is_causal: bool = False) -> Window:
        """torch.nn.attention.varlen's `window_size=(left, right)`: counts neighbours, -1 is unbounded;
        (-1, 0) is causal."""
        left, right = _pair("from_torch_varlen", window_size)
        return cls(_unbounded(left), 0 if is_causal else _unbounded(right))

    @classmethod
    def from_flashinfer(cls, window_left: int, *, causal: bool = True) -> Window:
        """FlashInfer's `window_left`: counts the keys before the query, -1 is unbounded. Without
        `causal` every key after the query is seen."""
        return cls(_unbounded(_whole("from_flashinfer", window_left)), 0 if causal else None)

    @classmethod
    def from_jax(cls, local_window_size: int | Sequence[int], *, is_causal: bool = False) -> Window:
        """jax.nn.dot_product_attention's `local_window_size`: counts neighbours, one int for both sides
        or a pair (left, right). JAX aligns queries and keys at their starts: `align="start"`."""
        if isinstance(local_window_size, Sequence):
            left, right = _pair("from_jax", local_window_size)
        else:
            left = right = _whole("from_jax", local_window_size)
        return cls(left, 0 if is_causal else right)

    @classmethod
    def from_attention_gym(cls, window_size: int) -> Window:
        """attention-gym's `generate_sliding_window(window_size)`: causal, counts the keys before the
        query."""
        return cls(_whole("from_attention_gym", window_size), 0)

    @classmethod
    def from_x_transformers(cls, max_attend_past: int) -> Window:
        """x-transformers' `max_attend_past`: causal, counts the keys before the query."""
        return cls(_whole("from_x_transformers", max_attend_past), 0)

    @classmethod
    def from_huggingface(cls, sliding_window: int | None, *, causal: bool = True) -> Window:
        """transformers' `sliding_window`, None is unbounded. In causal models it counts the keys with
        the query's own (W keys: itself and W - 1 before); in bidirectional ones it is the largest
        distance (2 W + 1 keys)."""
        if sliding_window is None:
            return cls(None, 0 if causal else None)
        if causal:
            return _with_itself("from_huggingface", sliding_window)
        width = _whole("from_huggingface", sliding_window)
        return cls(width, width)

    @classmethod
    def from_mistral(cls, sliding_window: int | None) -> Window:
        """`sliding_window` in Mistral's configurations: causal, counts the keys with the query's own;
        None is unbounded."""
        return cls(None, 0) if sliding_window is None else _with_itself("from_mistral", sliding_window)

    @classmethod
    def from_keras(cls, sliding_window: int) -> Window:
        """Keras' `sliding_window`: causal, counts the keys with the query's own. Keras aligns queries
        and keys at their starts: `align="start"`."""
        return _with_itself("from_keras", sliding_window)

    @classmethod
    def from_torchtune(cls, sliding_window_size: int) -> Window:
        """torchtune's Gemma 2 `sliding_window_size`: causal, counts the keys with the query's own."""
        return _with_itself("from_torchtune", sliding_window_size)


def _reach(count: int | None) -> int | None:
    """The count, or None where it reaches every position: added to one, sys.maxsize would wrap around."""
    return None if count is None or count >= _FARTHEST else count


def _with_itself(where: str, width: int) -> Window:
    if _whole(where, width) < 1:
        raise ValueError(
            f"Window.{where}({width}): this convention counts the query's own key, so the width is 1 or more"
        )
    return Window(width - 1, 0)


def _unbounded(count: int) -> int | None:
    return None if count == -1 else count


def _pair(where: str, sizes: Sequence[int]) -> tuple[int, int]:
    if not isinstance(sizes, Sequence) or len(sizes) != 2:
        raise ValueError(f"Window.{where}({sizes!r}): the window is a pair (left, right)")
    return _whole(where, sizes[0]), _whole(where, sizes[1])


def _missing(width: object) -> str:
    number = width if isinstance(width, int) and not isinstance(width, bool) and width > 0 else "n"
    less = number - 1 if isinstance(number, int) else "n - 1"
    return (
        f"Window takes two numbers, before and after, since libraries differ in what one of them means: "
        f"Window({number}, 0) is the query's own key and {number} before it, Window({less}, 0) is {number} "
        f"keys with its own, Window({number}, {number}) looks both ways, and None is without bound; or "
        f"translate another library's number: Window.from_huggingface(...), from_flash_attention(...), ..."
    )


def _whole(where: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt):
        raise TypeError(f"{where} takes whole numbers, got {value!r} of type {type(value).__name__}")
    return value
