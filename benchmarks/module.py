"""The layer beside torch's and Hugging Face's of the same size and with the same weights.

Hugging Face's is BertSelfAttention with the output projection that its layer has behind it, in the "eager"
and the "sdpa" implementation; without transformers it is left out. Forward is without gradients in eval
mode (where torch's layer has its own fused path); forward and backward is in training mode, with gradients
of the input and of all weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

import headwise as hw
from benchmarks.common import Case, Way, forward_and_backward
from benchmarks.program import Program, main

D_MODEL, HEADS = 512, 8
TOKENS = 4096
LENGTHS = {"quick": (16,), "short": (128, 1024), "full": (128, 256, 512, 1024, 2048, 4096)}


class BertAttention(nn.Module):
    """Hugging Face's attention of a BERT layer, with its output projection; no LayerNorm, no dropout."""

    def __init__(self, inner: nn.Module, d_model: int) -> None:
        super().__init__()
        self.inner = inner
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        heads, weights = self.inner(x)
        return self.out(heads), weights


def bert_attention(d_model: int, heads: int, implementation: str) -> BertAttention | None:
    """None where transformers isn't installed."""
    try:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertSelfAttention
    except ImportError:
        return None
    config = BertConfig(hidden_size=d_model, num_attention_heads=heads, attention_probs_dropout_prob=0.0)
    config._attn_implementation = implementation
    inner: nn.Module = BertSelfAttention(config)  # type: ignore[no-untyped-call]
    return BertAttention(inner, d_model)


def headwise_layer(d_model: int, heads: int) -> hw.MultiHeadAttention:
    return hw.MultiHeadAttention(d_model, heads, projection_bias=True)


def layers(d_model: int, heads: int) -> dict[str, Any]:
    """A function of x for each layer, and the layer; all hold the same weights."""
    torch.manual_seed(17)
    ours = headwise_layer(d_model, heads)
    torchs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    with torch.no_grad():
        weight, bias = ours.fused_weight()
        torchs.in_proj_weight.copy_(weight)
        if bias is not None:
            torchs.in_proj_bias.copy_(bias)
        torchs.out_proj.load_state_dict(ours.out_proj.state_dict())
    found: dict[str, Any] = {
        "headwise": (ours, lambda x: ours(x)),
        "torch": (torchs, lambda x: torchs(x, x, x, need_weights=False)[0]),
        "torch, weights": (torchs, lambda x: torchs(x, x, x, need_weights=True)[0]),
    }
    for name in ("eager", "sdpa"):
        bert = bert_attention(d_model, heads, name)
        if bert is not None:
            for theirs, mine in (("query", "q"), ("key", "k"), ("value", "v")):
                getattr(bert.inner, theirs).load_state_dict(getattr(ours, f"{mine}_proj").state_dict())
            bert.out.load_state_dict(ours.out_proj.state_dict())
            found[f"Bert {name}"] = (bert, lambda x, bert=bert: bert(x)[0])
    return found


def ways(length: int, tokens: int, *, training: bool) -> list[Way]:
    x = torch.randn(max(1, tokens // length), length, D_MODEL, requires_grad=training)
    found = []
    for name, (layer, run) in layers(D_MODEL, HEADS).items():
        layer.train(training)
        once: Callable[[Any], Any] = partial(_on, run, x)
        if training:
            once = forward_and_backward(once, (x, *layer.parameters()))
        found.append(Way(name, once if training else torch.no_grad()(once)))
    return found


def _on(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, _: Any) -> torch.Tensor:
    return run(x)


def cases(size: str) -> list[Case]:
    tokens = TOKENS if size != "quick" else 32
    modes = (False, True)
    return [_case(length, tokens, training) for training in modes for length in LENGTHS[size]]


def _case(length: int, tokens: int, training: bool) -> Case:
    label = ("forward + backward" if training else "forward", str(length), str(max(1, tokens // length)))
    return Case(label, lambda: ways(length, tokens, training=training), weigh=length * 2 >= tokens)


PROGRAM = Program(
    "module",
    f"layers, d_model {D_MODEL}, {HEADS} heads, float32",
    ("pass", "length", "batch"),
    cases,
    split=True,
    peers=("torch", "torch, weights", "Bert eager", "Bert sdpa"),
    notes=(() if find_spec("transformers") else ("transformers isn't installed: no Bert columns",)),
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
