"""A training step: forward, loss, backward, Adam. `Transformer` beside `torch.nn.Transformer`.

Both have the same weights, batches (padded, lengths unequal) and Adam, embeddings shared with the projection
before the softmax, and label smoothing. "torch" is nn.Transformer as its tutorial has it: a mask of padding
for source, memory and target, and dropout also of attention weights and inside the feed-forward network.
"torch, tuned" is the same computation as headwise's: no dropout but that of the paper, no padding mask where
the causal one makes it needless.

Claim: at least as fast (up to 2 %, which is noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.common import Case, Way
from benchmarks.program import Program, Result, main, no_slower
from benchmarks.table import Claim
from headwise.models import Transformer, TransformerConfig
from headwise.positions import sinusoidal
from headwise.training import token_loss

LAYERS, VOCABULARY, CELLS, SMOOTHING, PAD = 3, 4000, 1920, 0.1, 0
SIZES = {"quick": (16,), "short": (128, 256), "full": (128, 256, 512)}
LENGTHS = {"quick": (5,), "short": (15, 64), "full": (15, 30, 64, 128)}
DROPOUTS = {"quick": (0.0, 0.1), "short": (0.1,), "full": (0.1, 0.0)}
DTYPES = ("float32", "bfloat16")


class TorchTransformer(nn.Module):
    """nn.Transformer with embeddings, as one writes it around it."""

    def __init__(self, like: Transformer, dropout: float, *, tuned: bool) -> None:
        super().__init__()
        config = like.config
        inner = 0.0 if tuned else dropout
        self.tuned = tuned
        self.scale = math.sqrt(config.d_model)
        self.weight = nn.Parameter(like.output.weight.detach().clone())
        self.positions = sinusoidal(512, config.d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_layers,
            config.num_layers,
            config.d_ff,
            dropout,
            batch_first=True,
        )
        self.layers.encoder.norm = self.layers.decoder.norm = None  # the paper has none there
        for layer in (*self.layers.encoder.layers, *self.layers.decoder.layers):
            layer.dropout.p = inner if tuned else dropout
            layer.self_attn.dropout = inner
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = inner
        copy_weights(like, self.layers)

    def embed(self, ids: Tensor) -> Tensor:
        x = F.embedding(ids, self.weight) * self.scale + self.positions[: ids.shape[1]]
        out: Tensor = self.dropout(x)
        return out

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        padding = torch.arange(source.shape[1]) >= lengths[:, None]
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.layers(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=None if self.tuned else target == PAD,
            memory_key_padding_mask=padding,
            tgt_is_causal=True if self.tuned else None,
        )
        return F.linear(x, self.weight)


@torch.no_grad()
def copy_weights(ours: Transformer, theirs: nn.Transformer) -> None:
    """headwise's weights into an nn.Transformer."""

    def attention(mine: Any, other: nn.MultiheadAttention) -> None:
        weight, bias = mine.fused_weight()
        other.in_proj_weight.copy_(weight)
        other.in_proj_bias.copy_(bias)
        other.out_proj.load_state_dict(mine.out_proj.state_dict())

    pairs: list[tuple[Any, Any]] = [(ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)]
    for stack, others in pairs:
        for mine, other in zip(stack.layers, others.layers, strict=True):
            attention(mine.self_attention, other.self_attn)
            names = ["self_attention_norm", "feed_forward_norm"]
            if hasattr(other, "multihead_attn"):
                attention(mine.cross_attention, other.multihead_attn)
                names.insert(1, "cross_attention_norm")
            for number, name in enumerate(names, 1):
                getattr(other, f"norm{number}").load_state_dict(getattr(mine, name).state_dict())
            other.linear1.load_state_dict(mine.feed_forward.inner.state_dict())
            other.linear2.load_state_dict(mine.feed_forward.outer.state_dict())


def batch(length: int, cells: int) -> dict[str, Tensor]:
    """Sources and targets of unequal lengths, three quarters to all of `length`."""
    count = max(2, cells // length)

    def texts() -> tuple[Tensor, Tensor]:
        lengths = torch.randint(-(-3 * length // 4), length + 1, (count,))
        lengths[0] = length
        ids = torch.randint(3, VOCABULARY, (count, length))
        return ids.masked_fill(torch.arange(length) >= lengths[:, None], PAD), lengths

    source, lengths = texts()
    target, _ = texts()
    after = torch.cat((target[:, 1:], target.new_full((count, 1), PAD)), 1)
    return {"source": source, "target": target, "lengths": lengths, "after": after}


def config(d_model: int, dropout: float) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=VOCABULARY,
        num_layers=LAYERS,
        d_model=d_model,
        d_ff=4 * d_model,
        num_heads=max(2, d_model // 64 if d_model > 256 else d_model // 32),
        dropout=dropout,
        attention_bias=True,
    )


def our_loss(logits: Tensor, after: Tensor) -> Tensor:
    found = token_loss(logits, after, smoothing=SMOOTHING, pad_id=PAD)
    return found.loss_sum / found.tokens


def torch_loss(logits: Tensor, after: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), after.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)


def step(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], data: dict[str, Tensor], dtype: str
) -> Callable[[Any], Tensor]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()

    def run(_: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
            found = loss(model(data["source"], data["target"], data["lengths"]), data["after"])
        found.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return found.detach()

    return run


def ways(d_model: int, length: int, dtype: str, dropout: float, cells: int) -> list[Way]:
    torch.manual_seed(23)
    ours = Transformer(config(d_model, dropout))
    data = batch(length, cells)
    found = [Way("headwise", step(ours, our_loss, data, dtype))]
    for name, tuned in (("torch", False), ("torch, tuned", True)):
        theirs = TorchTransformer(ours, dropout, tuned=tuned)
        found.append(Way(name, step(theirs, torch_loss, data, dtype)))
    return found


def cases(size: str) -> list[Case]:
    cells = 10 if size == "quick" else CELLS
    return [
        _case(d_model, length, dtype, dropout, cells)
        for dtype in DTYPES
        for dropout in DROPOUTS[size]
        for d_model in SIZES[size]
        for length in LENGTHS[size]
    ]


def _case(d_model: int, length: int, dtype: str, dropout: float, cells: int) -> Case:
    label = (dtype, f"{dropout:g}", str(d_model), str(length))
    return Case(label, lambda: ways(d_model, length, dtype, dropout, cells), amount=cells)


def claims(results: Sequence[Result]) -> list[Claim]:
    return [no_slower("at least as fast", results)]


PROGRAM = Program(
    "training",
    f"training, {LAYERS}+{LAYERS} layers, vocabulary of {VOCABULARY}, {CELLS} target tokens with padding",
    ("dtype", "dropout", "d_model", "length"),
    cases,
    peers=("torch", "torch, tuned"),
    claims=claims,
    unit="tokens/s",
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
