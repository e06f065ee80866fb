"""A bias that needs no gradient: the others' gradients are what they are when it does need one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import headwise as hw

Q_LEN, K_LEN, WIDTH = 131, 197, 5
MASKS = {"none": None, "causal": hw.Causal(), "window": hw.Window(17, 3)}


def gradients(
    kernel: str, kv_heads: int, mask: hw.Mask | None, *, learned: bool, cap: float | None
) -> list[Tensor]:
    torch.manual_seed(23)
    shapes = ((2, 6, Q_LEN, WIDTH), (2, kv_heads, K_LEN, WIDTH), (2, kv_heads, K_LEN, WIDTH))
    q, k, v = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    bias = torch.randn(6, Q_LEN, K_LEN, dtype=torch.float64, requires_grad=learned)
    out = hw.attention(q, k, v, bias=bias, mask=mask, softcap=cap, kernel=kernel)
    sources = (q, k, v, bias) if learned else (q, k, v)
    return list(torch.autograd.grad(out, sources, torch.randn_like(out))[:3])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kv_heads", [2, 6])
@pytest.mark.parametrize(("kernel", "cap"), [("torch", None), ("tiled", None), ("tiled", 3.0)])
def test_gradients_are_those_beside_a_learned_bias(
    kernel: str, cap: float | None, kv_heads: int, mask: str
) -> None:
    fixed = gradients(kernel, kv_heads, MASKS[mask], learned=False, cap=cap)
    learned = gradients("reference", kv_heads, MASKS[mask], learned=True, cap=cap)
    for mine, theirs in zip(fixed, learned, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=1e-9)


def test_a_bias_whose_parts_are_partly_learned_gets_its_gradient() -> None:
    torch.manual_seed(23)
    q, k, v = torch.randn(3, 1, 3, 7, 5, dtype=torch.float64).unbind(0)
    slopes = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64, requires_grad=True)
    bias = hw.ALiBi(slopes) + hw.AddedScores(torch.randn(7, 7, dtype=torch.float64))
    found = []
    for kernel in ("torch", "tiled", "reference"):
        out = hw.attention(q, k, v, bias=bias, kernel=kernel)
        found.append(torch.autograd.grad(out.square().sum(), slopes)[0])
    assert found[2].abs().min() > 0
    for mine in found[:2]:
        torch.testing.assert_close(mine, found[2])
