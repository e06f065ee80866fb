"""Text to BERT's token ids, by the tokenizer.json that stands beside the weights.

`tokenizers` belongs to an extra (`pip install "headwise[see]"`), so it is imported only here and
only when a tokeniser is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.models.bert_config import read_json


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Some texts as token ids, padded to the longest.

    Shapes: ids int64 [batch, length]; lengths int64 [batch], real tokens of each text; tokens: the
    same as strings, without padding.
    """

    ids: Tensor
    lengths: Tensor
    tokens: tuple[tuple[str, ...], ...]


class BertTokens:
    """The tokeniser of one BERT folder.

    Args:
        folder: holds tokenizer.json (and perhaps sentence_bert_config.json, whose max_seq_length is
            the limit that sentence embeddings were trained with).
        max_length: positions of the model, the limit where the folder names no smaller one.

    Raises:
        FileNotFoundError: no tokenizer.json.
        ValueError: a file that can't be read.
        ImportError: the `tokenizers` package isn't installed.
    """

    def __init__(self, folder: Path, *, max_length: int) -> None:
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise FileNotFoundError(
                f"no tokenizer.json in {folder}: save the fast tokeniser beside the weights"
            )
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ImportError('reading text needs tokenizers: pip install "headwise[see]"') from error
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(file))
        except Exception as error:  # tokenizers raises nothing more precise
            raise ValueError(f"{file} is no tokeniser: {error}") from error
        # files often carry a truncation and a fixed padding of their own: both are decided here instead
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.max_length = min(max_length, _sentence_limit(folder) or max_length)
        pad = self._tokenizer.token_to_id("[PAD]")
        self.pad_id: int = 0 if pad is None else pad

    def encode(self, texts: Sequence[str], *, max_length: int | None = None) -> TokenBatch:
        """Token ids with [CLS] first and [SEP] last. A text beyond the limit loses its end, and a warning
        says so.

        Raises:
            ValueError: no texts, or a limit too small for the special tokens.
        """
        if isinstance(texts, str) or not texts:
            raise ValueError(f"texts must be a list of one or more strings, got {texts!r}")
        limit = self.max_length if max_length is None else max_length
        special = self._tokenizer.num_special_tokens_to_add(False)
        if limit < special:
            raise ValueError(f"max_length={limit} leaves no room for the {special} special tokens")
        full = self._tokenizer.encode_batch(list(texts))
        long = [n for n, one in enumerate(full) if len(one.ids) > limit]
        if long:
            warnings.warn(
                f"{len(long)} of {len(texts)} texts have more than {limit} tokens and are cut there "
                f"(first: text {long[0]}, {len(full[long[0]].ids)} tokens)",
                stacklevel=2,
            )
            # without a setting of the tokeniser, which another thread would meet
            full = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
            for one in full:
                one.truncate(limit - special)
            full = [self._tokenizer.post_process(one) for one in full]
        lengths = torch.tensor([len(one.ids) for one in full])
        ids = torch.full((len(full), int(lengths.max())), self.pad_id)
        for row, one in zip(ids, full, strict=True):
            row[: len(one.ids)] = torch.tensor(one.ids)
        return TokenBatch(ids, lengths, tuple(tuple(one.tokens) for one in full))


def _sentence_limit(folder: Path) -> int | None:
    file = folder / "sentence_bert_config.json"
    if not file.is_file():
        return None
    limit = read_json(file).get("max_seq_length")
    return limit if type(limit) is int and limit > 0 else None
