"""Encoder-only models over tokens: a label for a text, or a span of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from headwise.masks import KeyLengths, Mask
from headwise.models.bert import mean_pool
from headwise.models.building import AttentionFactory, encoder_from, encoder_mask
from headwise.models.checks import check_lengths
from headwise.models.embeddings import Embeddings, TokenEmbedding, positions_from
from headwise.models.stack_config import TokenConfig


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(TokenConfig):
    """Sizes and choices of a `TextEncoder`.

    Args:
        segments: number of kinds of text that are told apart (2: question and passage); 0 for none.
    """

    segments: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_sizes("segments", least=0)


class TextEncoder(nn.Module):
    """Token ids to one vector per token: the paper's encoder with its embeddings.

    Shapes: ids int64 [batch, length] -> [batch, length, d_model].
    """

    def __init__(self, config: TextEncoderConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        tokens = TokenEmbedding(config.vocab_size, config.d_model)
        self.embeddings = Embeddings(
            tokens, positions_from(config), dropout=config.dropout, segments=config.segments
        )
        self.encoder = encoder_from(config, attention)

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        mask: Mask | None = None,
    ) -> Tensor:
        """
        Args:
            lengths: int64 [batch], how many tokens of each text are real. Default: all.
            segments: int64 [batch, length], the kind of each token.
            mask: any further mask.
        """
        x = self.embeddings(ids, segments=segments)
        check_lengths("lengths", lengths, ids.shape[0])
        padding = None if lengths is None else KeyLengths(lengths)
        out: Tensor = self.encoder(x, mask=encoder_mask(self.config, padding, mask))
        return out


class SequenceClassifier(nn.Module):
    """A class for a text: scores = W pool(TextEncoder(ids)) + b.

    Shapes: ids int64 [batch, length] -> [batch, num_classes].

    Args:
        pool: "mean" of the real tokens' vectors, or "first", the vector of the first token.
    """

    def __init__(
        self,
        config: TextEncoderConfig,
        num_classes: int,
        *,
        pool: Literal["mean", "first"] = "mean",
        attention: AttentionFactory | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 1:
            raise ValueError(f"num_classes={num_classes}: must be 1 or more")
        if pool not in ("mean", "first"):
            raise ValueError(f'pool must be "mean" or "first", got {pool!r}')
        self.config = config
        self.pool = pool
        self.text = TextEncoder(config, attention=attention)
        self.dropout = nn.Dropout(config.dropout)
        self.classes = nn.Linear(config.d_model, num_classes)

    def forward(
        self, ids: Tensor, lengths: Tensor | None = None, *, segments: Tensor | None = None
    ) -> Tensor:
        states = self.text(ids, lengths, segments=segments)  # [batch, length, d_model]
        if self.pool == "first":
            pooled = states[:, 0]
        elif lengths is None:
            pooled = states.mean(1)
        else:
            pooled = mean_pool(states, lengths)
        out: Tensor = self.classes(self.dropout(pooled))
        return out


class SpanReader(nn.Module):
    """Where an answer stands in a text (Devlin et al. 2018, 4.2): each token's score of being the first of
    it, and of being the last.

    Shapes: ids int64 [batch, length] -> start and end scores, each [batch, length].
    """

    def __init__(self, config: TextEncoderConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        self.text = TextEncoder(config, attention=attention)
        self.dropout = nn.Dropout(config.dropout)
        self.ends = nn.Linear(config.d_model, 2)

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """
        Args:
            lengths: int64 [batch], how many tokens are real. Scores of the others are -inf.
            allowed: bool [batch, length], which tokens an answer may consist of (the passage's). Scores of
                the others are -inf. Default: all.
        """
        scores = self.ends(self.dropout(self.text(ids, lengths, segments=segments)))  # [batch, length, 2]
        if allowed is not None and (allowed.dtype != torch.bool or allowed.shape != ids.shape):
            raise ValueError(
                f"allowed must be boolean of the shape of ids, {tuple(ids.shape)}, got {allowed.dtype} "
                f"{tuple(allowed.shape)}"
            )
        if lengths is not None:
            real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
            allowed = real if allowed is None else allowed & real
        if allowed is not None:
            scores = scores.masked_fill(~allowed[..., None], -torch.inf)
        return scores[..., 0], scores[..., 1]


@torch.no_grad()
def best_spans(start: Tensor, end: Tensor, *, max_length: int = 30) -> tuple[Tensor, Tensor, Tensor]:
    """The span of highest start[i] + end[j], with i <= j < i + max_length.

    Shapes: start and end [batch, length] -> i, j (int64) and the score, each [batch]. The score is -inf where
    no span is allowed.
    """
    if start.ndim != 2 or start.shape != end.shape or not start.shape[1]:
        raise ValueError(
            f"start and end must both be [batch, length] of 1 token or more, got {tuple(start.shape)} and "
            f"{tuple(end.shape)}"
        )
    if max_length < 1:
        raise ValueError(f"max_length={max_length}: the most tokens of a span, 1 or more")
    length = start.shape[1]
    # Only the ends that each start can reach: [batch, length, max_length], never length x length.
    reach = min(max_length, length)
    ends = nn.functional.pad(end, (0, reach - 1), value=-torch.inf).unfold(1, reach, 1)
    best, offset = ends.max(-1)  # [batch, length]
    score, first = (start + best).max(-1)  # [batch]
    last = first + offset.gather(1, first[:, None]).squeeze(1)
    return first, last.clamp(max=length - 1), score
