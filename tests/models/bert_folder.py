"""A small BERT in a folder of one's own, made without headwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

safetensors = pytest.importorskip("safetensors.torch")

SMALL: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": 29,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "max_position_embeddings": 11,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}


def weights(**config: Any) -> dict[str, Tensor]:
    """Random weights under Hugging Face's names, made without headwise."""
    sizes = SMALL | config
    width, inner = sizes["hidden_size"], sizes["intermediate_size"]
    generator = torch.Generator().manual_seed(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (sizes["vocab_size"], width),
        "embeddings.position_embeddings.weight": (sizes["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": (sizes["type_vocab_size"], width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for n in range(sizes["num_hidden_layers"]):
        for part, shape in {
            "attention.self.query": (width, width),
            "attention.self.key": (width, width),
            "attention.self.value": (width, width),
            "attention.output.dense": (width, width),
            "attention.output.LayerNorm": (width,),
            "intermediate.dense": (inner, width),
            "output.dense": (width, inner),
            "output.LayerNorm": (width,),
        }.items():
            shapes[f"encoder.layer.{n}.{part}.weight"] = shape
            shapes[f"encoder.layer.{n}.{part}.bias"] = shape[:1]
    return {name: torch.randn(shape, generator=generator) / 3 for name, shape in shapes.items()}


def save(folder: Path, state: dict[str, Tensor], **config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(SMALL | config))
    safetensors.save_file(
        {name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors"
    )
    return folder


IDS = torch.tensor([[3, 5, 7, 11, 13], [2, 28, 0, 0, 0]])
