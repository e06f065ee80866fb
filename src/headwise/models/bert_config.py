"""The sizes and choices of a BERT, read from the config.json beside its weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.models.feed_forward import ACTIVATIONS, Activation, check_dropout

# config.json's name of each size that a BERT must have
_SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_length": "max_position_embeddings",
    "token_types": "type_vocab_size",
}
# config.json's name and default of each other number
_NUMBERS: dict[str, tuple[str, float]] = {
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "layer_norm_eps": ("layer_norm_eps", 1e-12),
}
_LARGEST = 2**30


@dataclass(frozen=True)
class BertConfig:
    """Sizes and choices of a BERT encoder.

    Raises:
        ValueError: a size below 1 or absurdly large, heads that don't divide d_model, an unknown activation,
            a dropout outside [0, 1), a layer_norm_eps that is negative or no number.
    """

    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    max_length: int
    token_types: int = 2
    activation: Activation = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    layer_norm_eps: float = 1e-12

    def __post_init__(self) -> None:
        small = [f"{name}={getattr(self, name)}" for name in _SIZES if getattr(self, name) < 1]
        if small:
            raise ValueError(f"every size of a BERT must be at least 1, got {', '.join(small)}")
        large = [f"{name}={getattr(self, name)}" for name in _SIZES if getattr(self, name) > _LARGEST]
        if large:
            raise ValueError(f"no BERT has a size above {_LARGEST}, got {', '.join(large)}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, got {self.activation!r}")
        check_dropout(self.dropout)
        check_dropout(self.attention_dropout)
        if not 0 <= self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps must be a number of 0 or more, got {self.layer_norm_eps}")
        if self.d_model % self.num_heads:
            raise ValueError(
                f"BERT's heads share d_model evenly, but d_model={self.d_model} is no multiple of "
                f"num_heads={self.num_heads}"
            )

    @classmethod
    def from_file(cls, path: Path) -> BertConfig:
        """Read a Hugging Face config.json. Raises FileNotFoundError or ValueError, naming the file."""
        if not path.is_file():
            raise FileNotFoundError(f"no config.json in {path.parent}: a BERT folder holds one")
        raw = read_json(path)
        try:
            return cls.from_dict(raw)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> BertConfig:
        """From the keys of a Hugging Face config.json; what headwise's encoder can't compute is refused.

        Raises:
            ValueError: another model_type, a decoder, cross-attention, relative positions, an
                activation other than gelu or relu, a missing or wrong size.
        """
        reasons = _refusals(raw)
        if reasons:
            raise ValueError("this model can't be loaded as a BERT encoder: " + "; ".join(reasons))
        missing = [theirs for theirs in _SIZES.values() if theirs not in raw and theirs != "type_vocab_size"]
        if missing:
            raise ValueError(f"the configuration lacks {', '.join(missing)}")
        sizes = {ours: raw.get(theirs, 2) for ours, theirs in _SIZES.items()}
        odd = [f"{_SIZES[name]}={value!r}" for name, value in sizes.items() if type(value) is not int]
        if odd:
            raise ValueError(f"sizes must be whole numbers, got {', '.join(odd)}")
        numbers = {ours: raw.get(theirs, default) for ours, (theirs, default) in _NUMBERS.items()}
        odd = [f"{_NUMBERS[ours][0]}={n!r}" for ours, n in numbers.items() if type(n) not in (int, float)]
        if odd:
            raise ValueError(f"these must be numbers: {', '.join(odd)}")
        return cls(**sizes, **numbers, activation=raw.get("hidden_act", "gelu"))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises ValueError, naming the file."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(raw).__name__}")
    return raw


def _refusals(raw: Mapping[str, Any]) -> list[str]:
    reasons = []
    kind = raw.get("model_type")
    if kind != "bert":
        reasons.append(f'model_type is {kind!r}, and only "bert" is understood')
    positions = raw.get("position_embedding_type") or "absolute"
    if positions != "absolute":
        reasons.append(
            f'position_embedding_type is {positions!r}, and only "absolute" (learned position embeddings) is'
        )
    if raw.get("is_decoder"):
        reasons.append("is_decoder is true, and this is an encoder: it attends both ways")
    if raw.get("add_cross_attention"):
        reasons.append("add_cross_attention is true, and this encoder has no cross-attention")
    activation = raw.get("hidden_act", "gelu")
    if activation not in ("gelu", "relu"):
        reasons.append(f'hidden_act is {activation!r}, and only "gelu" and "relu" are understood')
    return reasons
