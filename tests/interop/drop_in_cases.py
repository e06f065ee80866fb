"""Pairs of torch's module and the drop-in, and calls of every kind that torch takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from headwise.interop.torch import MultiheadAttention

Q_LEN, K_LEN, BATCH, HEADS, HEAD_DIM = 5, 7, 2, 3, 4
WIDTH = HEADS * HEAD_DIM
KDIM, VDIM = 11, 13


def pair(seed: int = 0, **options: Any) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
    """torch's module and the drop-in, made from the same seed, in float64."""
    made = []
    for kind in (nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(seed)
        made.append(kind(WIDTH, HEADS, dtype=torch.float64, **options))
    with torch.no_grad():
        for theirs, ours in zip(made[0].parameters(), made[1].parameters(), strict=True):
            noise = torch.randn_like(theirs) / 3  # biases start at 0: give every parameter a say
            theirs += noise
            ours += noise
    return made[0], made[1]


def plain_torch(module: nn.MultiheadAttention, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """torch's differentiable path, which has no mode of its own."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return module(*args, **kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


@dataclass(frozen=True)
class Case:
    options: dict[str, Any]
    kind: str  # "self", "cross"
    unbatched: bool
    masks: dict[str, Tensor]
    need_weights: bool
    average: bool
    training: bool
    grad: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    options = {
        "bias": draw(st.booleans()),
        "add_bias_kv": draw(st.booleans()),
        "add_zero_attn": draw(st.booleans()),
        "batch_first": draw(st.booleans()),
    }
    kind = draw(st.sampled_from(["self", "cross"]))
    if kind == "cross" and draw(st.booleans()):
        options |= {"kdim": KDIM, "vdim": VDIM}
    unbatched = draw(st.booleans())
    k_len = Q_LEN if kind == "self" else K_LEN
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    masks: dict[str, Tensor] = {}
    attn = draw(st.sampled_from(["none", "bool", "float", "-inf"]))
    if attn != "none":
        batch = 1 if unbatched else BATCH
        shape = draw(st.sampled_from([(Q_LEN, k_len), (batch * HEADS, Q_LEN, k_len)]))
        masks["attn_mask"] = _mask(attn, shape, generator)
    padding = draw(st.sampled_from(["none", "bool", "float", "-inf"]))
    if padding != "none":
        masks["key_padding_mask"] = _mask(padding, (k_len,) if unbatched else (BATCH, k_len), generator)
    for mask in masks.values():  # key 0 stays visible: what torch does with a row of nothing isn't a number
        mask[..., 0] = False if mask.dtype == torch.bool else 0.25
    return Case(
        options,
        kind,
        unbatched,
        masks,
        need_weights=draw(st.booleans()),
        average=draw(st.booleans()),
        training=draw(st.booleans()),
        grad=draw(st.booleans()),
    )


def _mask(kind: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    ignored = torch.rand(shape, generator=generator) < 0.4
    if kind == "bool":
        return ignored
    numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
    return numbers.masked_fill(ignored, float("-inf")) if kind == "-inf" else numbers


def inputs(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    kdim, vdim = case.options.get("kdim", WIDTH), case.options.get("vdim", WIDTH)
    batch = () if case.unbatched else (BATCH,)
    query = torch.randn(*batch, Q_LEN, WIDTH, dtype=torch.float64)
    key = torch.randn(*batch, K_LEN, kdim, dtype=torch.float64)
    value = torch.randn(*batch, K_LEN, vdim, dtype=torch.float64)
    if case.kind == "self":
        key = value = query
    if not case.options["batch_first"] and not case.unbatched:
        if case.kind == "self":
            query = key = value = query.transpose(0, 1)
        else:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    return query, key, value
