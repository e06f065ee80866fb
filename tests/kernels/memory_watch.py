"""Bytes that PyTorch holds while something runs, seen operation by operation."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryWatch(TorchDispatchMode):
    """Within `with MemoryWatch() as watch`, every tensor that an operation makes is counted as long as
    its storage lives.

    Attributes:
        largest: bytes of the largest single storage made.
        peak: most bytes alive at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0
        self.alive = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if id(storage) not in given and id(storage) not in self._known:
                    self._add(storage)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        size, key = storage.nbytes(), id(storage)
        self._known.add(key)
        self.alive += size
        self.largest = max(self.largest, size)
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self._gone, key, size)

    def _gone(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.alive -= size
