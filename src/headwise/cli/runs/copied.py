"""How much of what a run writes its pointer would copy from the input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from headwise.models.pointer import Pointer


@contextmanager
def copied_shares(model: nn.Module) -> Iterator[list[Tensor]]:
    """Watches a model's pointer: to each call belongs 1 - p_gen [batch, T], the share that copying has in
    the next token (see `Pointer`). Without a pointer the list stays empty.

    p_gen's two terms come from two modules, so both are watched.
    """
    shares: list[Tensor] = []
    pointer = next((one for one in model.modules() if isinstance(one, Pointer)), None)
    if pointer is None:
        yield shares
        return
    terms: dict[str, Tensor] = {}

    def attended(module: nn.Module, given: Any, found: Any) -> None:
        terms["context"] = found[0].detach()  # beside what was observed

    def gated(module: nn.Module, given: Any, found: Tensor) -> None:
        terms["state"] = found.detach()

    def done(module: nn.Module, given: Any, found: Tensor) -> None:
        shares.append((-(terms["state"] + terms["context"]).float()).sigmoid().squeeze(-1))

    handles = [
        pointer.copy_attention.register_forward_hook(attended),
        pointer.gate.register_forward_hook(gated),
        pointer.register_forward_hook(done),
    ]
    try:
        yield shares
    finally:
        for handle in handles:
            handle.remove()
