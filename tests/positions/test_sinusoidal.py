"""Sinusoids and learned positions, added to embeddings."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from headwise.positions import LearnedPositions, Sinusoidal, sinusoidal


def test_numbers_on_paper() -> None:
    table = sinusoidal(3, 4, dtype=torch.float64)
    # Position 1: sin 1, cos 1, and a hundredth of the speed: sin 0.01, cos 0.01.
    assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    expected = torch.tensor([math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)], dtype=torch.float64)
    torch.testing.assert_close(table[1], expected, rtol=0, atol=1e-15)


def test_odd_width_ends_with_a_sine() -> None:
    odd, even = sinusoidal(7, 5, dtype=torch.float64), sinusoidal(7, 6, dtype=torch.float64)
    assert odd.shape == (7, 5)
    for pos in range(7):
        assert odd[pos, 4].item() == pytest.approx(math.sin(pos / 10000 ** (4 / 5)), abs=1e-15)
    assert even.shape == (7, 6)


def test_a_step_is_a_rotation_of_each_pair() -> None:
    """Section 3.5: PE(pos + k) is a linear function of PE(pos)."""
    table = sinusoidal(19, 6, dtype=torch.float64)
    angle = torch.tensor([10000 ** (-2 * i / 6) for i in range(3)], dtype=torch.float64) * 5
    sin, cos = table[:14, 0::2], table[:14, 1::2]
    torch.testing.assert_close(table[5:, 0::2], sin * angle.cos() + cos * angle.sin(), rtol=0, atol=1e-13)


def test_far_positions_keep_their_phase() -> None:
    row = sinusoidal(1, 2, positions=torch.tensor([65535]))[0]
    assert row[0].item() == pytest.approx(math.sin(65535), abs=1e-7)
    assert row[1].item() == pytest.approx(math.cos(65535), abs=1e-7)


def test_half_precision_input_gets_the_rounded_encoding() -> None:
    x = torch.zeros(2, 3, 5, dtype=torch.bfloat16)
    y = Sinusoidal(5)(x, offset=4093)
    exact = sinusoidal(3, 5, positions=torch.arange(4093, 4096))
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y[0].float(), exact, rtol=0, atol=2**-8)


@pytest.mark.parametrize("module", [Sinusoidal(5), LearnedPositions(23, 5)])
def test_offset_and_positions_continue_the_sequence(module: torch.nn.Module) -> None:
    x = torch.randn(2, 7, 5)
    whole = module(x)
    torch.testing.assert_close(module(x[:, 3:], offset=3), whole[:, 3:])
    torch.testing.assert_close(module(x[:, 3:], positions=torch.arange(3, 7)), whole[:, 3:])
    each = module(x[:, :2], offset=torch.tensor([0, 11]))
    torch.testing.assert_close(each[0], whole[0, :2])
    torch.testing.assert_close(each[1], module(x[1:, :2], offset=11)[0])


def test_learned_positions_train_only_what_they_used() -> None:
    module = LearnedPositions(5, 3)
    module(torch.zeros(2, 2, 3), offset=1).sum().backward()
    assert module.weight.grad is not None
    assert module.weight.grad.tolist() == [[0.0] * 3, [2.0] * 3, [2.0] * 3, [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m(torch.zeros(1, 4, 3), offset=2),
        lambda m: m(torch.zeros(1, 2, 3), positions=torch.tensor([0, 5])),
        lambda m: m(torch.zeros(1, 2, 3), offset=torch.tensor([4])),
        lambda m: m(torch.zeros(1, 2, 3), offset=-1),
    ],
)
def test_positions_beyond_the_table(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"the table holds positions 0 to 4.*LearnedPositions\("):
        call(LearnedPositions(5, 3))


def test_wrong_sizes() -> None:
    with pytest.raises(ValueError, match=r"x\.shape=\(2, 7\): expected .* 5\]"):
        Sinusoidal(5)(torch.zeros(2, 7))
    with pytest.raises(ValueError, match="d_model=0"):
        sinusoidal(3, 0)
    with pytest.raises(ValueError, match="last dimension of positions"):
        sinusoidal(3, 5, positions=torch.arange(4))
    with pytest.raises(ValueError, match="max_length=0"):
        LearnedPositions(0, 3)
    for base in (0.0, -2.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"base={base}"):
            Sinusoidal(5, base=base)(torch.zeros(2, 3, 5))
    with pytest.raises(TypeError, match=r"dtype=torch\.int64"):  # all zeros and ones
        Sinusoidal(5)(torch.zeros(2, 3, 5, dtype=torch.int64))
    learned, x = LearnedPositions(7, 5), torch.zeros(2, 3, 5)
    for positions in (torch.arange(2), torch.zeros(3, 3).long(), torch.zeros(1, 1, 3).long()):
        with pytest.raises(ValueError, match=r"positions.shape=.* and x.shape=\(2, 3, 5\)"):
            learned(x, positions=positions)
    torch.testing.assert_close(learned(x, positions=torch.tensor([[0, 1, 2]])), learned(x))
    for wrong in (torch.arange(3.0), torch.tensor([True, False, True])):
        with pytest.raises(TypeError, match=f"positions are {wrong.dtype}"):
            learned(x, positions=wrong)


def test_empty() -> None:
    assert sinusoidal(0, 5).shape == (0, 5)
    assert Sinusoidal(5)(torch.zeros(2, 0, 5)).shape == (2, 0, 5)
    assert LearnedPositions(3, 5)(torch.zeros(0, 2, 5)).shape == (0, 2, 5)


def test_a_kept_encoding_does_not_depend_on_what_was_asked_before() -> None:
    width, far = 6, 700  # beyond the blocks in which encodings are made
    x = torch.zeros(1, far, width, dtype=torch.float64)
    whole = Sinusoidal(width)(x)
    torch.testing.assert_close(whole[0], sinusoidal(far, width, dtype=torch.float64), rtol=0, atol=1e-15)
    module = Sinusoidal(width)
    for first, last in ((0, 3), (250, 260), (1, 600), (699, 700), (0, 700)):
        assert torch.equal(module(x[:, first:last], offset=first), whole[:, first:last])
    for place in (0, 5, 255, 256, 699):  # the next step of a text
        assert torch.equal(module(x[:, :1], positions=torch.tensor([place])), whole[:, place : place + 1])
    half = module(x[:, :3].bfloat16())  # another type
    assert torch.equal(half, whole[:, :3].bfloat16())
    assert not module.state_dict()
    assert len(pickle.dumps(module)) < 5000  # what is kept doesn't travel


def test_encodings_kept_in_inference_mode_serve_training() -> None:
    module, x = Sinusoidal(6), torch.randn(2, 3, 6)
    with torch.inference_mode():
        module(x)
    x.requires_grad_()
    (module(x) * 2).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.full_like(x, 2))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_the_next_step_under_vmap_and_traced() -> None:
    module, x, places = Sinusoidal(6), torch.randn(3, 1, 6), torch.tensor([[0], [7], [300]])
    expected = torch.stack([module(one, positions=place) for one, place in zip(x, places, strict=True)])

    def step(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = module(x, positions=places)
        return out

    torch.testing.assert_close(torch.func.vmap(step)(x, places), expected)
    graph = make_fx(step)(x[0], places[0])
    torch.testing.assert_close(graph(x[2], places[2]), expected[2])
    traced = torch.jit.trace(step, (x[0], places[0]))
    torch.testing.assert_close(traced(x[2], places[2]), expected[2])
