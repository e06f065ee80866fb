"""Copying: tokens of the source beside those of the vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.cache import CrossCache
from headwise.masks import Mask
from headwise.multihead import MultiHeadAttention
from headwise.observers import Weights


class Places(NamedTuple):
    """Where each token of a source stands.

    ids: int64 [batch, S]. first: int64 [batch, S], where the token of each place stands for the first time.
    """

    ids: Tensor
    first: Tensor

    @classmethod
    def of(cls, source: Tensor) -> Places:
        if not source.shape[1]:
            return cls(source, source)
        same = source[:, :, None] == source[:, None, :]  # [batch, S, S]
        return cls(source, same.byte().argmax(-1))  # of equal ones, argmax takes the first

    def select(self, rows: Tensor) -> Places:
        return Places(self.ids[rows], self.first[rows])


class Pointer(nn.Module):
    """The next token is one of the vocabulary with probability p_gen, else one of the source's.

        a_i    = weight of source place i in `copy_attention`: one head, from decoder states to the memory
        p_gen  = sigmoid(w_state . state + w_context . sum_i a_i memory_i + b)
        P(w)   = p_gen softmax(logits)_w + (1 - p_gen) sum_{i : source_i = w} a_i

    (See, Liu and Manning 2017, *Get To The Point*, equations 8 and 9; there a_i are the weights of the only
    cross-attention, and p_gen reads the last token too. Here one vocabulary of word pieces serves both sides,
    so every token of a source is in it. A source without
    tokens leaves softmax(logits).)

    What is handed out are scores whose softmax is P, as if there were no pointer: losses, label smoothing
    and decoding take them as they are. Adding a number to all scores changes nothing, so only those of the
    source's tokens w need another value than their logit:

        score_w = logit_w + softplus(log((1 - p_gen) / p_gen) + log(sum_i a_i) - log_softmax(logits)_w)

    which neither overflows nor meets log 0. Computed in float32 or better.

    Shapes: states [n k, T, d_model], logits [n k, T, V], memory [n, S, d_model], k outputs for each of n
    sources -> scores [n k, T, V].
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        # its output is w_context . sum_i a_i memory_i: one number for each state, so one number per value
        self.copy_attention = MultiHeadAttention(d_model, 1, d_k=d_model, d_v=1, output_dim=1)
        self.gate = nn.Linear(d_model, 1)
        nn.init.zeros_(self.gate.bias)

    def forward(
        self,
        states: Tensor,
        logits: Tensor,
        places: Places,
        memory: Tensor | None,
        *,
        mask: Mask | None = None,
        cache: CrossCache | None = None,
    ) -> Tensor:
        """
        Args:
            states: the decoder's output, which the logits are computed from.
            places: of the sources.
            memory: the encoder's output; may be left out once the cache is filled.
            mask: the memory's padding.
        """
        n = places.ids.shape[0]
        mine = states.reshape(n, -1, states.shape[-1])  # [n, k T, d_model]
        copying, p_copy = self.distribution(mine, memory, mask=mask, cache=cache)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(n, -1, logits.shape[-1])
        return mixed(wide, copying, p_copy, places).reshape(logits.shape)

    def distribution(
        self,
        states: Tensor,
        memory: Tensor | None,
        *,
        mask: Mask | None = None,
        cache: CrossCache | None = None,
    ) -> tuple[Tensor, Tensor]:
        """a [n, T, S], and log((1 - p_gen) / p_gen) [n, T, 1], in float32 or better."""
        filled = cache is not None and cache.filled
        context, seen = self.copy_attention(
            states, None if filled else memory, mask=mask, cache=cache, observe=[Weights()]
        )
        odds = -(self.gate(states) + context)
        weights: Tensor = seen.weights
        return weights.squeeze(-3), odds.to(weights.dtype)


def mixed(logits: Tensor, copying: Tensor, odds: Tensor, places: Places) -> Tensor:
    """Scores whose softmax is sigmoid(-odds) softmax(logits) + sigmoid(odds) copying, see `Pointer`.

    Shapes: logits [n, T, V], copying [n, T, S], odds [n, T, 1] -> [n, T, V].
    """
    ids = places.ids[:, None].expand(copying.shape)  # [n, T, S]
    first = places.first[:, None].expand(copying.shape)
    mass = torch.zeros_like(copying).scatter_add(-1, first, copying)  # of a token, at its first place
    here = mass > 0  # neither padding nor a later place
    safe = torch.where(here, mass, 1.0)
    more = odds + safe.log() - logits.log_softmax(-1).gather(-1, ids)
    return logits.scatter_add(-1, ids, torch.where(here, F.softplus(more), 0.0))
