"""BERT's encoder (Devlin et al. 2018): embeddings, then the paper's post-norm encoder with gelu."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.masks import Allow, KeyLengths, Mask, all_of
from headwise.models.bert_config import BertConfig
from headwise.models.bert_tokens import BertTokens
from headwise.models.checks import check_ids, check_integers, check_range
from headwise.models.dropping import dropped
from headwise.models.encoder import Encoder


class BertEmbeddings(nn.Module):
    """What enters the first layer: x_i = LayerNorm(word[id_i] + position[i] + token_type[type_i]).

    Shapes: int64 [batch, length] (ids and types) -> [batch, length, d_model].
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.d_model)
        self.position = nn.Embedding(config.max_length, config.d_model)
        self.token_type = nn.Embedding(config.token_types, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, token_types: Tensor | None = None) -> Tensor:
        # without types every token is of the first kind: one row of the table, no index tensor
        kind = self.token_type.weight[0] if token_types is None else self.token_type(token_types)
        x = self.word(ids) + kind + self.position.weight[: ids.shape[-1]]  # [batch, length, d_model]
        out: Tensor = dropped(self.dropout, self.norm(x))
        return out


class BertEncoder(nn.Module):
    """A BERT without its task heads: token ids in, one vector per token out.

    Its attention layers are `encoder.layers.<n>.self_attention`. Load weights with
    `headwise.models.load_bert`.

    Args:
        config: sizes and choices.
        tokens: the tokeniser that belongs to the weights, where there is one; `embed` needs it.
    """

    def __init__(self, config: BertConfig, *, tokens: BertTokens | None = None) -> None:
        super().__init__()
        self.config = config
        self.tokens = tokens
        self.embeddings = BertEmbeddings(config)
        self.encoder = Encoder.build(
            config.num_layers,
            config.d_model,
            config.num_heads,
            config.d_ff,
            activation=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            attention_bias=True,
            layer_norm_eps=config.layer_norm_eps,
        )

    def forward(
        self,
        ids: Tensor,
        *,
        lengths: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_types: Tensor | None = None,
        mask: Mask | None = None,
    ) -> Tensor:
        """The last layer's vectors.

        Shapes: ids int64 [batch, length] -> [batch, length, d_model]. Vectors of padding tokens are
        computed like any other and mean nothing.

        Args:
            lengths: int64 [batch], the number of real tokens of each text, which stand first.
            attention_mask: bool [batch, length], True where a token is real (for padding that doesn't
                stand last). Give this or `lengths`.
            token_types: int64 [batch, length], the segment of each token; all 0 where it isn't given.
            mask: any further mask; it must allow too.

        Raises:
            ValueError: shapes that don't fit, a text longer than the model's positions, ids outside
                the vocabulary, both lengths and attention_mask.
            TypeError: ids that are no integers, a mask that isn't boolean.
        """
        self._check(ids, token_types)
        mask = all_of(mask, _padding(ids, lengths, attention_mask))
        out: Tensor = self.encoder(self.embeddings(ids, token_types), mask=mask)
        return out

    @torch.no_grad()
    def embed(self, texts: Sequence[str], *, normalize: bool = True, batch_size: int = 32) -> Tensor:
        """One vector per text: the mean of its tokens' vectors (Reimers and Gurevych 2019), of length 1
        where `normalize`, so that a dot product is a cosine.

        Shapes: n texts -> [n, d_model]. Dropout follows train() and eval(), as everywhere.

        Raises:
            RuntimeError: the model has no tokeniser.
            TypeError: one string where a list of strings belongs.
            ValueError: a batch_size below 1.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}: must be 1 or more")
        if isinstance(texts, str):
            raise TypeError(f"texts must be a list of strings; for one text give [{texts[:20]!r}]")
        if self.tokens is None:
            raise RuntimeError(
                "this model has no tokeniser: load_bert finds it where the folder has a tokenizer.json and "
                'tokenizers is installed (pip install "headwise[see]")'
            )
        if not texts:
            return self.embeddings.word.weight.new_zeros(0, self.config.d_model)
        device = self.embeddings.word.weight.device
        pooled = []
        for start in range(0, len(texts), batch_size):
            batch = self.tokens.encode(texts[start : start + batch_size])
            lengths = batch.lengths.to(device)
            pooled.append(mean_pool(self(batch.ids.to(device), lengths=lengths), lengths))
        vectors = torch.cat(pooled)
        return nn.functional.normalize(vectors, dim=-1) if normalize else vectors

    def _check(self, ids: Tensor, token_types: Tensor | None) -> None:
        check_ids("ids", ids, self.config.vocab_size, self.config.max_length)
        if token_types is not None and token_types.shape != ids.shape:
            raise ValueError(
                f"token_types must have the shape of ids, {tuple(ids.shape)}, got {tuple(token_types.shape)}"
            )
        if token_types is not None:
            check_integers("token_types", token_types)
            check_range("token_types", token_types, self.config.token_types, "the model's segments")


def mean_pool(hidden: Tensor, lengths: Tensor) -> Tensor:
    """Mean over the first `lengths` tokens of each text; 0 for a text of no tokens.

    Shapes: [batch, length, d_model] and int64 [batch] -> [batch, d_model].
    """
    if hidden.ndim != 3 or lengths.shape != hidden.shape[:1]:
        raise ValueError(
            f"hidden must be [batch, length, d_model] and lengths [batch], got {tuple(hidden.shape)} and "
            f"{tuple(lengths.shape)}"
        )
    real = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]  # [batch, length]
    total = hidden.masked_fill(~real[..., None], 0).sum(dim=1)  # [batch, d_model]
    return total / lengths.clamp(min=1)[:, None]


def _padding(ids: Tensor, lengths: Tensor | None, attention_mask: Tensor | None) -> Mask | None:
    if lengths is not None and attention_mask is not None:
        raise ValueError("lengths and attention_mask say the same thing: give one of them")
    if lengths is not None:
        return KeyLengths(lengths)
    if attention_mask is None:
        return None
    if attention_mask.dtype != torch.bool:
        raise TypeError(
            f"attention_mask must be boolean, True where a token is real, got {attention_mask.dtype}: "
            "give attention_mask.bool() if 1 means real"
        )
    if attention_mask.shape != ids.shape:
        raise ValueError(
            f"attention_mask must have the shape of ids, {tuple(ids.shape)}, got "
            f"{tuple(attention_mask.shape)}"
        )
    return Allow(attention_mask[:, None, None, :])  # every head and query, the keys of its own text
