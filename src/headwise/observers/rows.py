"""One number per query: how broad, how far, how large."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from headwise.observers.base import Block, Observer


@dataclass(frozen=True, eq=False)
class Entropy(Observer):
    """How broad a query looks.

        H_i = -sum_j P_ij log P_ij = sum_j P_ij (lse_i - s_ij)

    Masked keys add exactly 0. Every term of the second form is at least 0, so nothing cancels, and
    it is computed in float32 or better from the scores: through bfloat16 values the same number is
    off by up to 0.1 nats.

    Result: [*batch, heads, q_len], unit: nats (divide by log 2 for bits); from 0 (one key) to log n
    (n keys alike). With sinks the sum runs over the keys alone. A query that may attend to nothing: 0.

    Source: Clark et al. 2019, section 3.3 ("broad" heads).
    """

    @property
    def name(self) -> str:
        return self.label("entropy")

    def measure(self, block: Block) -> tuple[Tensor]:
        surprise = block.lse.unsqueeze(-1) - block.scores  # -log P_ij, inf where masked
        surprise = surprise.masked_fill(block.scores == float("-inf"), 0.0)
        return ((block.weights * surprise).sum(-1),)


@dataclass(frozen=True, eq=False)
class LogSumExp(Observer):
    """The logarithm of the softmax's denominator.

        lse_i = log(sum_j exp(s_ij) + exp(sink_h))

    The results of attention over disjoint sets of keys are merged by it. Result: [*batch, heads,
    q_len], unit: that of the scores (natural logarithm). A query that may attend to nothing: -inf
    (the sink, where there is one).

    Source: Milakov and Gimelshein 2018; with a gradient, unlike in flash-attention#404.
    """

    @property
    def name(self) -> str:
        return self.label("log_sum_exp")

    def measure(self, block: Block) -> tuple[Tensor]:
        return (block.lse,)


@dataclass(frozen=True, eq=False)
class Distance(Observer):
    """How far a query looks on average.

        D_i = sum_j P_ij |i - j|            i, j: positions

    The difference is taken in whole numbers before it meets a weight, so that positions of any size
    lose nothing. Result: [*batch, heads, q_len], unit: positions. What a sink takes counts as
    distance 0. A query that may attend to nothing: 0.

    Source: Vig and Belinkov 2019 ("attention distance", there averaged over queries).
    """

    @property
    def name(self) -> str:
        return self.label("distance")

    def measure(self, block: Block) -> tuple[Tensor]:
        apart = (block.q_pos - block.k_pos).abs().to(block.weights.dtype)
        return ((block.weights * apart).sum(-1),)


@dataclass(frozen=True, eq=False)
class Spread(Observer):
    """How wide the stretch of keys is that a query looks at: the variance of their positions.

        m_i = sum_j P_ij (j - i) / sum_j P_ij
        V_i = sum_j P_ij (j - i - m_i)^2 / sum_j P_ij

    Both differences are taken before squaring: float32 is 64 apart at 32768 squared, so that the shorter
    formula E[j^2] - E[j]^2 gives 0 or -128 there, where three adjacent keys alike have 2/3.

    Result: [*batch, heads, q_len], unit: positions squared. A query that may attend to nothing: 0.
    """

    @property
    def name(self) -> str:
        return self.label("spread")

    def measure(self, block: Block) -> tuple[Tensor]:
        offset = (block.k_pos - block.q_pos).to(block.weights.dtype)
        mass = block.weights.sum(-1, keepdim=True)
        share = block.weights / mass.masked_fill(mass == 0, 1.0)
        mean = (share * offset).sum(-1, keepdim=True)
        return ((share * (offset - mean).square()).sum(-1),)
