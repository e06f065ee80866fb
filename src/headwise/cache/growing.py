"""A cache that holds every step, and gradients too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.cache.base import CacheView, check_crop
from headwise.cache.joined import JoinedCache
from headwise.masks import ValidKeys

_ROOM = 32  # steps for which room is made at once


class GrowingCache(JoinedCache):
    """Keys and values of all steps so far.

    Gradients flow through earlier chunks: nothing that may have one is written in place. Each append then
    copies what is there (attention reads as much anyway). Without gradients, single steps are written into
    room that is made for several at once; tensors handed out before keep their numbers.

    Padding of a chunk stays as a hole at position -1, which no query may attend to.
    """

    # Tensors that `_k` and `_v` are the first steps of, with room behind; no other cache writes into it.
    _room: tuple[Tensor, Tensor] | None = None

    @property
    def k(self) -> Tensor | None:
        """[*batch, kv_heads, k_len, d_k]; None while empty."""
        return self._k

    @property
    def v(self) -> Tensor | None:
        """[*batch, kv_heads, k_len, d_v]; None while empty."""
        return self._v

    def append(self, k: Tensor, v: Tensor, *, lengths: Tensor | None = None) -> CacheView:
        k, v, q_positions, k_positions = self._joined(k, v, lengths)
        self._k, self._v, self._k_positions = k, v, k_positions
        self._room = None
        mask = None if self._equal else ValidKeys()
        return CacheView(k, v, q_positions, k_positions, mask, aligned=self._equal)

    @property
    def takes_steps(self) -> bool:
        """Whether `push` may be asked: there are steps, and sequences are equally long."""
        return self._k is not None and isinstance(self._total, int)

    def push(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor] | None:
        """`append` of one step that is real in all sequences, without its checks: all keys and values.

        None, and nothing done, unless sequences are equally long, gradients are off, and the step is like
        those kept, [batch, kv_heads, 1, d].
        """
        old_k, old_v, total = self._k, self._v, self._total
        if old_k is None or old_v is None or not isinstance(total, int) or torch.is_grad_enabled():
            return None
        if not (_continues(old_k, k) and _continues(old_v, v)):
            return None
        if self._room is None or not _writable(self._room[0], total):
            self._room = _with_room(old_k), _with_room(old_v)
        room_k, room_v = self._room
        # By `data`, since no number is changed that was handed out: a gradient that waits for those of the
        # steps before would otherwise be refused.
        room_k.data.narrow(2, total, 1).copy_(k)
        room_v.data.narrow(2, total, 1).copy_(v)
        self._total = total + 1
        self._k, self._v = room_k.narrow(2, 0, total + 1), room_v.narrow(2, 0, total + 1)
        self._k_positions = None  # 0, 1, ...
        return self._k, self._v

    def rollback(self, mark: Any) -> None:
        super().rollback(mark)
        self._room = None

    def reset(self) -> None:
        super().reset()
        self._room = None

    def select(self, rows: Tensor) -> None:
        room = self._room
        if room is None or not isinstance(self._total, int):
            super().select(rows)
            return
        self._check_select(rows)
        self._room = room[0][rows], room[1][rows]  # the room too, or the next step would copy all once more
        self._k, self._v = (one.narrow(2, 0, self._total) for one in self._room)

    def crop(self, n: int | Tensor) -> None:
        positions = self._k_positions
        if self._k is None or positions is None:
            return
        check_crop(n, tuple(self._k.shape[:-3]))
        self._room = None  # what was handed out may look at the steps that are dropped
        if isinstance(n, int) and isinstance(self._total, int):
            self._cut(min(n, self._total))
            return
        total = self.lengths
        limit = torch.as_tensor(n, device=total.device).expand(total.shape)
        kept = positions < limit.unsqueeze(-1)  # [*batch, k_len]
        self._k_positions = torch.where(kept, positions, -1)
        self._total = torch.minimum(total, limit)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_room"}


def _continues(kept: Tensor, new: Tensor) -> bool:
    """Whether `new` [batch, kv_heads, 1, d] is one more step of `kept`."""
    return (
        new.ndim == kept.ndim == 4
        and new.shape[2] == 1
        and new.shape[:2] == kept.shape[:2]
        and new.shape[3] == kept.shape[3]
        and new.dtype == kept.dtype
        and new.device == kept.device
    )


def _writable(room: Tensor, step: int) -> bool:
    """Whether there is room for this step. Tensors of inference mode can't be written elsewhere."""
    return step < room.shape[2] and (torch.is_inference_mode_enabled() or not room.is_inference())


def _with_room(kept: Tensor) -> Tensor:
    """A copy [batch, kv_heads, more than k_len, d]."""
    steps = kept.shape[2]
    room = kept.new_empty(*kept.shape[:2], steps + _ROOM, kept.shape[3])
    room.narrow(2, 0, steps).copy_(kept)
    return room
