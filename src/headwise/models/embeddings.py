"""Tokens as vectors, and vectors as scores of tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headwise.models.checks import check_ids, check_integers, check_range
from headwise.models.dropping import dropped
from headwise.models.feed_forward import check_dropout
from headwise.models.stack_config import StackConfig
from headwise.multihead.projections import project_by
from headwise.positions import LearnedPositions, Sinusoidal


class TokenEmbedding(nn.Module):
    """One vector per token, and the same matrix as the projection before the softmax.

        embed(token) = sqrt(d_model) E[token]          logits(x) = x E^T          E in R^{V x d_model}

    (*Attention Is All You Need*, 3.4, after Press and Wolf 2016.) Sharing is a matter of calling both on one
    module; two modules share nothing.

    Initialisation: E ~ N(0, 1 / d_model), so that embeddings, scaled, and the logits of a normalised x both
    have variance 1. (The paper doesn't say how weights start.)

    Args:
        scale: of embeddings. Default sqrt(d_model), the paper's.

    Shapes: int64 [..., length] -> [..., length, d_model]; logits [..., d_model] -> [..., V].
    """

    def __init__(self, vocab_size: int, d_model: int, *, scale: float | None = None) -> None:
        super().__init__()
        if vocab_size < 1 or d_model < 1:
            raise ValueError(f"vocab_size={vocab_size} and d_model={d_model}: both must be 1 or more")
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight) * self.scale

    def logits(self, x: Tensor) -> Tensor:
        """Scores of every token, before the softmax."""
        return project_by(self.weight, x)

    def extra_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, d_model={self.d_model}, scale={self.scale:.4g}"


class Embeddings(nn.Module):
    """What enters the first layer: Dropout(embed(token) + position [+ segment]).

    Shapes: ids int64 [batch, length] -> [batch, length, d_model].

    Args:
        tokens: the token embedding, shared with whoever else holds it.
        positions: a module that adds positions to vectors (`Sinusoidal`, `LearnedPositions`), or None where
            attention has positions of its own, or none at all.
        segments: number of kinds of text that are told apart (question, passage).
        name: of the ids, for messages.
    """

    def __init__(
        self,
        tokens: TokenEmbedding,
        positions: nn.Module | None = None,
        *,
        dropout: float = 0.1,
        segments: int = 0,
        name: str = "ids",
    ) -> None:
        super().__init__()
        check_dropout(dropout)
        self.tokens = tokens
        self.positions = positions
        self.segments = nn.Embedding(segments, tokens.d_model) if segments else None
        self.dropout = nn.Dropout(dropout)
        self.name = name

    def forward(
        self, ids: Tensor, *, positions: Tensor | None = None, segments: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            positions: int64 [length] or [batch, length], where the tokens stand. Default 0, 1, ...
            segments: int64 [batch, length], of which kind each token is.

        Raises:
            TypeError, ValueError: ids or segments that are no whole numbers, or out of range; more tokens
                than learned positions.
        """
        table = self.positions if isinstance(self.positions, LearnedPositions) else None
        most = table.max_length if table is not None and positions is None else None
        check_ids(self.name, ids, self.tokens.vocab_size, most)
        x = self.tokens(ids)
        if self.positions is not None:
            x = self.positions(x, positions=positions)
        if segments is not None:
            if self.segments is None:
                raise ValueError("segments= for a model that tells no segments apart: leave them out")
            check_integers("segments", segments)
            check_range("segments", segments, self.segments.num_embeddings, "the model's segments")
            if segments.shape != ids.shape:
                raise ValueError(
                    f"segments must have the shape of {self.name}, {tuple(ids.shape)}, got "
                    f"{tuple(segments.shape)}"
                )
            x = x + self.segments(segments)
        return dropped(self.dropout, x)


def positions_from(config: StackConfig, length: int | None = None) -> nn.Module | None:
    """The module that adds positions; None where the configuration has them elsewhere, or none.

    Learned positions start like the embeddings before they are scaled, from N(0, 1 / d_model).
    """
    if config.positions == "sinusoidal":
        return Sinusoidal(config.d_model)
    if config.positions == "learned":
        learned = LearnedPositions(config.max_length if length is None else length, config.d_model)
        nn.init.normal_(learned.weight, std=config.d_model**-0.5)
        return learned
    return None
