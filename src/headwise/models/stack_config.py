"""The sizes and choices that every stack of layers has, whatever it reads."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from headwise.models.encoder import Norm
from headwise.models.feed_forward import ACTIVATIONS, Activation

Positions = Literal["sinusoidal", "learned", "rotary", "none"]
POSITIONS = ("sinusoidal", "learned", "rotary", "none")


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """Sizes and choices of a stack of layers; the defaults are the paper's base model.

    Args:
        num_layers: N.
        d_model: width of the vectors between layers.
        d_ff: inner width of the feed-forward networks.
        num_heads: h.
        num_kv_heads: key/value heads; fewer than h makes grouped heads. Default h.
        d_k, d_v: width of each head's queries and keys, and values. Default d_model / h.
        dropout: share of each sub-layer's output, and of the embedded input, that is set to 0 (P_drop).
        attention_dropout: share of the attention weights. The paper has none.
        attention_bias: biases in the attention's projections. The paper has none.
        norm: "post" (the paper's) or "pre".
        activation: "relu" (the paper's) or "gelu".
        positions: "sinusoidal" (the paper's), "learned" (table 3, row E), "rotary" (queries and keys of
            self-attention are turned), "none".
        window: self-attention reaches this many positions back (and ahead, in an encoder). Default: all.
        max_length: positions that can be learned; other kinds have no limit.
        layer_norm_eps: added to the variance in LayerNorm.

    Raises:
        ValueError, TypeError: a size below 1, a share outside [0, 1), an unknown choice.
    """

    num_layers: int = 6
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    num_kv_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    attention_bias: bool = False
    norm: Norm = "post"
    activation: Activation = "relu"
    positions: Positions = "sinusoidal"
    window: int | None = None
    max_length: int = 5000
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        self.check_sizes(
            "num_layers", "d_model", "d_ff", "num_heads", "num_kv_heads", "d_k", "d_v", "max_length"
        )
        self.check_sizes("window", least=0)
        self.check_shares("dropout", "attention_dropout")
        self.check_choice("norm", ("post", "pre"))
        self.check_choice("activation", tuple(sorted(ACTIVATIONS)))
        self.check_choice("positions", POSITIONS)

    def check_sizes(self, *names: str, least: int = 1) -> None:
        """Raise unless each of these fields is None or a whole number of at least `least`."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")

    def check_shares(self, *names: str) -> None:
        """Raise unless each of these fields is a number in [0, 1)."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, 0 <= {name} < 1, got {value!r}")
            if not 0 <= value < 1:
                raise ValueError(f"{name} is a share, 0 <= {name} < 1, got {value}")

    def check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        """Raise ValueError unless the field is one of `choices`."""
        if getattr(self, name) not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for a JSON file; `from_dict` reads it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Raises ValueError for keys that this configuration doesn't have, suggesting the nearest, and for
        keys that are missing."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for key in raw:
            if key not in fields:
                near = difflib.get_close_matches(str(key), fields, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(fields))}"
                raise ValueError(f"{cls.__name__} has no {key!r}: {hint}")
        needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
        missing = [name for name in needed if name not in raw]
        if missing:
            raise ValueError(f"{cls.__name__} needs {', '.join(missing)}")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()
        }
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class TokenConfig(StackConfig):
    """A stack that reads or writes tokens.

    Args:
        vocab_size: number of different tokens.
        pad_id, bos_id, eos_id: padding, the token before the first and the one after the last.

    The rest: see `StackConfig`.
    """

    vocab_size: int
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_sizes("vocab_size")
        self.check_sizes("pad_id", "bos_id", "eos_id", least=0)
        beyond = [
            f"{name}={getattr(self, name)}"
            for name in ("pad_id", "bos_id", "eos_id")
            if getattr(self, name) >= self.vocab_size
        ]
        if beyond:
            raise ValueError(
                f"{', '.join(beyond)}: must be tokens of the vocabulary, 0 .. {self.vocab_size - 1}"
            )
