"""A vocabulary of word pieces, learned from the texts and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.models.stack_config import TokenConfig
from headwise.training.extras import need
from headwise.training.files import replace_file
from headwise.training.runs import RunError

NAME = "tokenizer.json"
PAD, BOS, EOS = "[PAD]", "[BOS]", "[EOS]"
SPECIAL = (PAD, BOS, EOS)
SMALLEST = len(SPECIAL) + 256


class Tokens:
    """Byte-pair encoding (Sennrich et al. 2016) that begins with the 256 bytes, so nothing is unknown.

    One vocabulary serves source and target ("a shared source-target vocabulary", *Attention Is All You
    Need*, 5.1). Texts come back as they were, but for blanks at their beginning and Unicode's composed forms
    (NFC). A text that spells "[EOS]" is an ordinary text.
    """

    pad_id, bos_id, eos_id = range(len(SPECIAL))

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.encode_special_tokens = True  # special tokens that a text spells are text

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int, *, special: Sequence[str] = (), lowercase: bool = False
    ) -> Tokens:
        """Learn the pieces that are most frequent.

        Args:
            vocab_size: at most; small corpora don't have as many pieces that occur twice
            special: further special tokens, numbered after the first three
            lowercase: capital letters are read as small ones, and decoded so; places are those in the text

        Raises:
            ValueError: vocab_size doesn't hold the bytes and the special tokens.
            MissingExtra: tokenizers isn't installed.
        """
        least = SMALLEST + len(special)
        if vocab_size < least:
            raise ValueError(f"vocab_size is {vocab_size}: 256 bytes and special tokens need {least}")
        package = need("tokenizers", "text")
        tokenizer = package.Tokenizer(package.models.BPE())
        composed = package.normalizers.NFC()
        tokenizer.normalizer = (
            package.normalizers.Sequence([composed, package.normalizers.Lowercase()])
            if lowercase
            else composed
        )
        tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = package.decoders.ByteLevel()
        trainer = package.trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=[*SPECIAL, *special],
            initial_alphabet=sorted(package.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @classmethod
    def load(cls, run: Path) -> Tokens:
        """The vocabulary of a run.

        Raises:
            RunError: it isn't there, or damaged.
        """
        package = need("tokenizers", "text")
        path = run / NAME
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise RunError(f"run {run} has no {NAME} that can be read") from None
        try:
            return cls(package.Tokenizer.from_str(text))
        except Exception:  # the package raises no narrower one
            raise RunError(f"{path} is damaged: it is no tokenizer") from None

    def save(self, run: Path) -> None:
        """Write tokenizer.json into a run's folder."""
        replace_file(run / NAME, self._tokenizer.to_str(pretty=True).encode())

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special tokens."""
        return [one.ids for one in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def encode_with_places(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids, and where in the text each token stands: first character, and the one after the last. A blank
        before a word belongs to its token."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return found.ids, found.offsets

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Texts; special tokens are left out."""
        return [text.strip() for text in self._tokenizer.decode_batch([list(one) for one in ids])]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each token as it is read: " little", "ü", "[EOS]". Bytes that are no whole letter become U+FFFD."""
        named = dict(enumerate(SPECIAL))
        return [named[one] if one in named else self._tokenizer.decode([one]) for one in ids]


def check_token_ids(config: TokenConfig) -> None:
    """Raise ValueError unless a model's special tokens are those of `Tokens`."""
    for name in ("pad_id", "bos_id", "eos_id"):
        if getattr(config, name) != getattr(Tokens, name):
            raise ValueError(
                f"{name} is {getattr(config, name)}: the tokenizer numbers it {getattr(Tokens, name)}"
            )


def pad(rows: Sequence[Sequence[int]], pad_id: int = Tokens.pad_id) -> tuple[Tensor, Tensor]:
    """Rows of unequal length as one tensor [rows, longest], padded at their ends; and their lengths."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], dtype=torch.int64)
    return ids, torch.tensor([len(row) for row in rows])
