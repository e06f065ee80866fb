"""Rotary positions in both layouts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.positions import LinearScaling, Llama3Scaling, Rotary, convert_rotary

LAYOUTS = ["half", "interleaved"]


def rotation_matrix(position: float, d_k: int, rotary_dim: int, layout: str) -> torch.Tensor:
    """The turn written as one matrix, pair by pair."""
    matrix = torch.eye(d_k, dtype=torch.float64)
    for p in range(rotary_dim // 2):
        a, b = (2 * p, 2 * p + 1) if layout == "interleaved" else (p, p + rotary_dim // 2)
        angle = position * 10000 ** (-2 * p / rotary_dim)
        matrix[a, a] = matrix[b, b] = math.cos(angle)
        matrix[a, b], matrix[b, a] = -math.sin(angle), math.sin(angle)
    return matrix


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("d_k", "rotary_dim"), [(2, 2), (14, 14), (13, 6), (17, 2)])
def test_is_the_rotation_of_the_paper(layout: str, d_k: int, rotary_dim: int) -> None:
    x = torch.randn(2, 3, 5, d_k, dtype=torch.float64)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 11, 2, 65535, 0]])
    turned = Rotary(d_k, layout=layout, rotary_dim=rotary_dim)(x, positions)
    for b in range(2):
        for i in range(5):
            matrix = rotation_matrix(positions[b, i].item(), d_k, rotary_dim, layout)
            torch.testing.assert_close(turned[b, :, i], x[b, :, i] @ matrix.T, rtol=0, atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(
    layout=st.sampled_from(LAYOUTS),
    shift=st.integers(0, 60000),
    seed=st.integers(0, 2**31),
)
def test_scores_depend_on_the_distance_alone(layout: str, shift: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 3, 5, 14, generator=generator, dtype=torch.float64)
    rotary, at = Rotary(14, layout=layout), torch.arange(5)
    scores = rotary(q, at) @ rotary(k, at).mT
    moved = rotary(q, at + shift) @ rotary(k, at + shift).mT
    torch.testing.assert_close(moved, scores, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("source", "target"), [LAYOUTS, LAYOUTS[::-1]])
@pytest.mark.parametrize(("d_k", "rotary_dim"), [(14, None), (13, 6)])
def test_converted_weights_give_the_same_scores(
    source: str, target: str, d_k: int, rotary_dim: int | None
) -> None:
    x, at = torch.randn(7, 5, dtype=torch.float64), torch.arange(7)
    wq, wk = torch.randn(2, 3 * d_k, 5, dtype=torch.float64)
    bq, bk = torch.randn(2, 3 * d_k, dtype=torch.float64)

    def scores(
        layout: str, wq: torch.Tensor, bq: torch.Tensor, wk: torch.Tensor, bk: torch.Tensor
    ) -> torch.Tensor:
        rotary = Rotary(d_k, layout=layout, rotary_dim=rotary_dim)
        q, k = ((x @ w.T + b).unflatten(-1, (3, d_k)).transpose(0, 1) for w, b in ((wq, bq), (wk, bk)))
        return rotary(q, at) @ rotary(k, at).mT

    def convert(weight: torch.Tensor) -> torch.Tensor:
        return convert_rotary(weight, num_heads=3, source=source, target=target, rotary_dim=rotary_dim)

    before = scores(source, wq, bq, wk, bk)
    after = scores(target, *(convert(weight) for weight in (wq, bq, wk, bk)))
    torch.testing.assert_close(after, before)
    back = convert_rotary(convert(wq), num_heads=3, source=target, target=source, rotary_dim=rotary_dim)
    assert torch.equal(back, wq)
    assert not torch.equal(convert(wq), wq)


def test_scalings() -> None:
    x, at = torch.randn(3, 5, 14, dtype=torch.float64), torch.arange(5)
    slow = Rotary(14, scaling=LinearScaling(4.0))
    torch.testing.assert_close(slow(x, at * 4), Rotary(14)(x, at))
    # Llama 3: wavelengths up to 2048 are kept, from 8192 on divided by 8.
    wavelengths = torch.tensor([7.0, 2048.0, 8192.0, 1e6], dtype=torch.float64)
    scaled = 2 * math.pi / Llama3Scaling()(2 * math.pi / wavelengths)
    torch.testing.assert_close(scaled, wavelengths * torch.tensor([1.0, 1.0, 8.0, 8.0], dtype=torch.float64))
    with pytest.raises(ValueError, match="factor=0"):
        LinearScaling(0)
    with pytest.raises(ValueError, match="low < high"):
        Llama3Scaling(low=4.0, high=1.0)


def test_no_state_and_gradients() -> None:
    rotary = Rotary(6).half()
    assert not list(rotary.state_dict())
    x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: rotary(x, torch.tensor([0, 5, 65535])), (x,))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matches_hugging_face(layout: str) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj")
    x, at = torch.randn(2, 3, 5, 14), torch.arange(5)
    if layout == "half":
        angles = at[:, None] * (10000 ** (-torch.arange(0, 14, 2) / 14))
        cos, sin = (f(torch.cat((angles, angles), -1))[None] for f in (torch.cos, torch.sin))
        theirs, _ = llama.apply_rotary_pos_emb(x, x, cos, sin)
    else:
        sin, cos = gptj.create_sinusoidal_positions(5, 14).split(7, dim=-1)
        theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    torch.testing.assert_close(Rotary(14, layout=layout)(x, at), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rotary(13), r"rotary_dim=13 with d_k=13.*rotary_dim=12"),
        (lambda: Rotary(6, rotary_dim=8), "from 2 to d_k"),
        (lambda: Rotary(6, rotary_dim=0), "from 2 to d_k"),
        (lambda: Rotary(6, layout="neox"), "layout='neox'"),
        (lambda: Rotary(6, base=0.0), "base=0"),
        (lambda: Rotary(6, base=float("nan")), "base=nan"),
        (lambda: Rotary(6, base=float("inf")), "base=inf"),
        (lambda: Rotary(6)(torch.zeros(2, 3, 4), torch.arange(3)), r"\[\*batch, heads, length, 6\]"),
        (lambda: Rotary(6)(torch.zeros(2, 3, 6), torch.arange(4)), r"positions\.shape=\(4,\)"),
        (
            lambda: convert_rotary(torch.zeros(7, 3), num_heads=2, source="half", target="interleaved"),
            "7 rows don't divide into 2 heads",
        ),
    ],
)
def test_errors(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()
