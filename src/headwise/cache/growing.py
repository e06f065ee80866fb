"""A cache that holds every step, and gradients too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.cache.base import CacheView, Pushed, check_crop, continues, writable
from headwise.cache.joined import JoinedCache
from headwise.masks import ValidKeys

_ROOM = 32  # steps for which room is made at once, at least: an eighth of what is there


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
    def next_length(self) -> int | None:
        """How many keys the next step attends to, if `push` may be asked: there are steps, and sequences are
        equally long. Else None."""
        return self._total + 1 if self._k is not None and isinstance(self._total, int) else None

    uneven = False  # sequences of which `push` may be asked are equally long

    def push(self, k: Tensor, v: Tensor) -> Pushed | None:
        """Show one step that is real in all sequences, [batch, kv_heads, 1, d], as `append` would, without
        its checks. It counts from `keep_pushed` on, and until then nothing has happened.

        None unless sequences are equally long, gradients are off, and the step is like those kept.
        """
        old_k, old_v, total = self._k, self._v, self._total
        if old_k is None or old_v is None or not isinstance(total, int) or torch.is_grad_enabled():
            return None
        if not (continues(old_k, k) and continues(old_v, v)):
            return None
        if self._room is None or total == self._room[0].shape[2] or not writable(self._room[0]):
            self._room = _with_room(old_k), _with_room(old_v)
        room_k, room_v = self._room
        # By `data`, since no number is changed that was handed out: a gradient that waits for those of the
        # steps before would otherwise be refused.
        room_k.data.narrow(2, total, 1).copy_(k)
        room_v.data.narrow(2, total, 1).copy_(v)
        return Pushed(room_k.narrow(2, 0, total + 1), room_v.narrow(2, 0, total + 1), total + 1)

    def keep_pushed(self, pushed: Pushed) -> None:
        """Count the step that `push` showed last."""
        if pushed.length is not None:
            self._k, self._v, self._total = pushed.k, pushed.v, pushed.length
        self._k_positions = None  # 0, 1, ...

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


def _with_room(kept: Tensor) -> Tensor:
    """A copy [batch, kv_heads, more than k_len, d]."""
    steps = kept.shape[2]
    room = kept.new_empty(*kept.shape[:2], steps + max(_ROOM, steps // 8), kept.shape[3])
    room.narrow(2, 0, steps).copy_(kept)
    return room
