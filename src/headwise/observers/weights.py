"""The weights themselves: the most expensive thing to ask for."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from headwise.observers.base import Block, Observer


@dataclass(frozen=True, eq=False)
class Weights(Observer):
    """The probabilities, per head and before dropout.

        P_ij = exp(s_ij - lse_i)

    Result: [*batch, heads, q_len, k_len], float32 or better, unit: share of 1. A row sums to 1; with
    sinks to 1 minus the sink's share; a query that may attend to nothing has a row of 0. Never
    averaged over heads, never touched by dropout.

    Memory is that of the result. `rows=` and `heads=` shrink it, and the time, to what is asked for:
    `Weights(rows=(-1,), heads=(0, 3))` is [*batch, 2, 1, k_len] and costs two rows.

    Source: Vaswani et al. 2017, eq. 1; why not after dropout: pytorch#42929.
    """

    @property
    def name(self) -> str:
        return self.label("weights")

    def measure(self, block: Block) -> tuple[Tensor]:
        return (block.over_keys(block.weights),)
