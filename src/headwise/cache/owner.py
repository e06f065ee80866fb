"""Whose keys and values a cache holds."""

from __future__ import annotations

import weakref
from typing import Any

import torch


class Owned:
    """Base of what keeps keys and values of one layer: another layer's would be wrong numbers in silence.

    The layer that fills an empty cache owns it until `reset()`. It is remembered weakly; copies and pickled
    caches have no owner until a layer fills them further.
    """

    _owner: weakref.ref[object] | None = None

    def check_owner(self, layer: object) -> None:
        """Raise ValueError where another layer, still alive, filled this cache. Not asked while a graph is
        traced, which would fit no other layer then."""
        if torch.compiler.is_compiling():
            return
        owner = None if self._owner is None else self._owner()
        if owner is None or owner is layer:
            return
        name = type(self).__name__
        raise ValueError(
            f"this {name} holds keys and values of another {type(owner).__name__} than the one that was "
            f"called: each layer needs its own cache, LayerCaches(GrowingCache, n) makes them; reset() "
            f"empties this one, for any layer."
        )

    def claim(self, layer: object) -> None:
        """From now on this is the cache of `layer`."""
        if not torch.compiler.is_compiling() and (self._owner is None or self._owner() is not layer):
            self._owner = weakref.ref(layer)

    def _disown(self) -> None:
        self._owner = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_owner"}
