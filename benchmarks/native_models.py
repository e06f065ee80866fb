"""Rows of native.py about whole layers and models, where most operations are those of linears."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks import module, training
from benchmarks.aims import Row, products, times_as_fast
from benchmarks.common import Way
from benchmarks.forward import DTYPES
from benchmarks.limits import peak

LENGTHS = {"quick": (16,), "short": (128, 1024), "full": (128, 512, 2048)}
STEPS = {"quick": ((16, 5),), "short": ((256, 30),), "full": ((256, 30), (512, 30), (512, 128))}
DROPOUT = 0.1
BACKWARD = 2.5  # of attention's operations forward; of a linear's 2


def layer_rows(size: str) -> list[Row]:
    """MultiHeadAttention beside nn.MultiheadAttention: forward 2.2 times, with backward 2 times."""
    tokens = module.TOKENS if size != "quick" else 32
    found = []
    for backward, faster in ((False, 2.2), (True, 2.0)):
        for length in LENGTHS[size]:
            linear = 2 * 4 * tokens * module.D_MODEL**2
            attention = 4 * tokens * length * module.D_MODEL
            flops = linear * (3 if backward else 1) + attention * (1 + BACKWARD if backward else 1)
            what = "forward + backward" if backward else "forward"
            label = ("layer", f"{what}, d_model {module.D_MODEL}", str(length), str(max(1, tokens // length)))
            aims = (times_as_fast("torch", faster), *products(flops, torch.float32, peer="torch"))
            found.append(Row(label, partial(_layer, length, tokens, backward), aims=aims))
    return found


def _layer(length: int, tokens: int, backward: bool) -> list[Way]:
    ways = module.ways(length, tokens, training=backward)
    return [way for way in ways if way.name in ("headwise", "torch")] + peak(torch.float32)


def training_rows(size: str) -> list[Row]:
    """A step of the paper's Transformer beside torch.nn.Transformer: 1.5 times."""
    cells = 10 if size == "quick" else training.CELLS
    return [
        Row(
            (
                "training step",
                f"{dtype}, d_model {d_model}, {training.LAYERS}+{training.LAYERS} layers",
                str(length),
                str(max(2, cells // length)),
            ),
            partial(_step, d_model, length, dtype, cells),
            aims=(
                times_as_fast("torch", 1.5),
                times_as_fast("torch, tuned", None),
                *products(step_flops(d_model, length, cells), DTYPES[dtype], peer="torch"),
            ),
        )
        for dtype in training.DTYPES
        for d_model, length in STEPS[size]
    ]


def _step(d_model: int, length: int, dtype: str, cells: int) -> list[Way]:
    return training.ways(d_model, length, dtype, DROPOUT, cells) + peak(DTYPES[dtype])


def step_flops(d_model: int, length: int, cells: int) -> float:
    """Operations of forward and backward, positions of padding included: 2 for each weight and token, and
    those of attention; backward 2 times those of the weights, 2.5 times those of attention."""
    texts = max(2, cells // length)
    tokens = texts * length  # of the source, and of the target
    seen = length**2 + length * (length + 1) / 2 + length**2  # by encoder, decoder, and decoder of the memory
    attention = 4 * texts * d_model * training.LAYERS * seen
    return 3 * 2 * tokens * step_weights(d_model) + (1 + BACKWARD) * attention


def step_weights(d_model: int) -> int:
    """Of all linears, each of which sees as many tokens. A layer has 4 d^2 of attention and 8 d^2 of the
    feed-forward network, a decoder's attention to the memory besides."""
    return training.LAYERS * (12 + 16) * d_model**2 + training.VOCABULARY * d_model
