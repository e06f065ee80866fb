"""ALiBi, relative buckets, added tensors, and their sums."""

from __future__ import annotations

import math

import pytest
import torch

from headwise.masks import Frame
from headwise.positions import (
    AddedScores,
    ALiBi,
    Bias,
    RelativeBias,
    RelativeBuckets,
    alibi_slopes,
    relative_buckets,
)

HEADS, Q, K = 3, 5, 7


def frame(batch: tuple[int, ...] = (2,), **positions: torch.Tensor) -> Frame:
    return Frame.of(batch, HEADS, Q, K, **positions)


def whole(bias: Bias, at: Frame) -> torch.Tensor:
    block = bias.block(at, slice(0, Q), slice(0, K))
    return block.expand(*at.batch, HEADS, Q, K)


def test_slopes_of_the_paper() -> None:
    assert alibi_slopes(1) == [2.0**-8]
    assert alibi_slopes(8) == [2.0**-i for i in range(1, 9)]
    # 6 heads: the 4 of four heads, then the first two of eight that lie between.
    assert alibi_slopes(6) == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 7, 8, 11, 12, 13, 16, 17, 71, 128])
def test_slopes_for_any_number_of_heads(heads: int) -> None:
    slopes = alibi_slopes(heads)
    assert len(slopes) == len(set(slopes)) == heads
    assert all(0 < slope < 1 for slope in slopes)


def test_alibi_is_minus_slope_times_distance() -> None:
    q_pos = torch.tensor([[2, 3, 4, 5, 6], [100, 0, 7, 1, 9]])
    at = frame(q_pos=q_pos)
    slopes = torch.tensor([0.5, 0.25, 2.0])
    one_way, both_ways = whole(ALiBi(slopes), at), whole(ALiBi(slopes, symmetric=True), at)
    for b in range(2):
        for h in range(HEADS):
            for i in range(Q):
                for j in range(K):
                    distance = q_pos[b, i].item() - j
                    assert one_way[b, h, i, j].item() == -slopes[h].item() * distance
                    assert both_ways[b, h, i, j].item() == -slopes[h].item() * abs(distance)


def test_half_precision_slopes_still_see_single_steps() -> None:
    at = Frame.of((), 1, 1, 2049)
    scores = ALiBi(torch.tensor([0.5], dtype=torch.bfloat16)).block(at, slice(0, 1), slice(0, 2049))
    assert (scores.diff(dim=-1) == 0.5).all()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (32, 20), (14, 23), (4, 7), (128, 800)])
def test_buckets_follow_the_definition(bidirectional: bool, buckets: int, max_distance: int) -> None:
    half = buckets // 2 if bidirectional else buckets
    exact = half // 2
    if max_distance <= exact:
        pytest.skip("refused")
    steps = torch.arange(-2 * max_distance, 2 * max_distance + 1)
    got = relative_buckets(steps, buckets=buckets, bidirectional=bidirectional, max_distance=max_distance)
    for step, bucket in zip(steps.tolist(), got.tolist(), strict=True):
        n = abs(step) if bidirectional else max(-step, 0)
        if n < exact:
            expected = {n}
        else:
            share = math.log(n / exact) / math.log(max_distance / exact) * (half - exact)
            # Where the formula lands on a whole number, float32 may fall on either side of it.
            expected = {min(exact + math.floor(share + e), half - 1) for e in (-1e-6, 0.0, 1e-6)}
        offset = half if bidirectional and step > 0 else 0
        assert bucket - offset in expected, (step, bucket)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_those_of_t5(bidirectional: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    steps = torch.arange(-300, 301)
    theirs = t5.T5Attention._relative_position_bucket(
        steps, bidirectional=bidirectional, num_buckets=32, max_distance=128
    )
    ours = relative_buckets(steps, buckets=32, bidirectional=bidirectional, max_distance=128)
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_looks_up_its_table(bidirectional: bool) -> None:
    module = RelativeBias(HEADS, buckets=6, bidirectional=bidirectional, max_distance=5)
    q_pos = torch.tensor([[2, 3, 4, 5, 6], [100, 0, 7, 1, 9]])
    at = frame(q_pos=q_pos)
    got = whole(module(), at)
    buckets = relative_buckets(
        torch.arange(K) - q_pos[..., None], buckets=6, bidirectional=bidirectional, max_distance=5
    )
    torch.testing.assert_close(got, module.weight[buckets].movedim(-1, -3), rtol=0, atol=0)
    got.sum().backward()
    assert module.weight.grad is not None
    # Each pair sends 1 to its bucket.
    counts = torch.bincount(buckets.flatten(), minlength=6).float()
    torch.testing.assert_close(module.weight.grad, counts[:, None].expand(-1, HEADS))
    assert list(module.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    "shape",
    [(), (K,), (1,), (Q, K), (Q, 1), (1, K), (HEADS, 1, K), (2, HEADS, Q, K), (2, 1, 1, K), (1, HEADS, Q, 1)],
)
def test_added_scores_cut_out_blocks(shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape)
    bias, at = AddedScores(tensor), frame()
    bias.check(batch=(2,), heads=HEADS, q_len=Q, k_len=K)
    full = tensor.expand(2, HEADS, Q, K)
    assert torch.equal(whole(bias, at), full)
    rows, cols = torch.tensor([4, 0]), torch.tensor([6, 1, 3])
    for r, c in ((slice(1, 4), slice(2, 7)), (rows, slice(0, 3)), (slice(2, 3), cols), (rows, cols)):
        block = bias.block(at, r, c)
        want = full[:, :, r][..., c]
        assert torch.equal(block.expand(want.shape), want)
        assert block.numel() <= tensor.numel() * 3  # nothing of size 1 was expanded


def test_added_scores_refuse_masks() -> None:
    keep = torch.tensor([[True, False], [True, True]])
    with pytest.raises(TypeError, match=r"bool.*Allow\(tensor\)"):
        AddedScores(keep)
    with pytest.raises(TypeError, match=r"int64.*Allow\(tensor\.bool\(\)\)"):
        AddedScores(keep.long())
    with pytest.raises(ValueError, match=r"only 0 and 1.*Allow\(tensor == 1\).*check_values=False"):
        AddedScores(keep.float())
    with pytest.raises(ValueError, match="only 0 and 1"):
        AddedScores(torch.ones(2, 3))
    with pytest.raises(TypeError, match="expected a float tensor"):
        AddedScores([0.0, 1.0])  # type: ignore[arg-type]
    assert AddedScores(keep.float(), check_values=False).tensor.shape == (2, 2)


def test_added_scores_take_biases() -> None:
    for tensor in (
        torch.zeros(2, 3),  # a bias at its start
        torch.tensor([0.0, 1.0, 0.5]),
        torch.tensor([0.0, float("-inf")]),
        torch.tensor([0.0, torch.finfo(torch.float32).min]),
        torch.tensor([0.0, 1.0], requires_grad=True),
        torch.zeros(0, 3),
    ):
        assert AddedScores(tensor).tensor is tensor


def test_checks_against_the_call() -> None:
    sizes = {"batch": (2,), "heads": HEADS, "q_len": Q, "k_len": K}
    with pytest.raises(ValueError, match=r"doesn't broadcast to .*\(2, 3, 5, 7\)"):
        AddedScores(torch.randn(2, Q, K)).check(**sizes)
    with pytest.raises(ValueError, match=r"ALiBi\.for_heads\(3\)"):
        ALiBi.for_heads(5).check(**sizes)
    with pytest.raises(ValueError, match="3 query heads"):
        RelativeBias(5)().check(**sizes)
    with pytest.raises(ValueError, match="3 query heads"):
        (ALiBi.for_heads(HEADS) + RelativeBias(5)()).check(**sizes)
    with pytest.raises(ValueError, match="float tensor"):
        ALiBi(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="float tensor"):
        RelativeBuckets(torch.zeros(3))
    with pytest.raises(ValueError, match="even number"):
        RelativeBias(3, buckets=7)
    with pytest.raises(ValueError, match="max_distance must be 9"):
        RelativeBias(3, max_distance=8)
    with pytest.raises(ValueError, match="heads=0"):
        ALiBi.for_heads(0)


def test_sums_and_their_gradients() -> None:
    at = frame()
    dense = torch.randn(2, HEADS, Q, K, dtype=torch.float64, requires_grad=True)
    slopes = torch.rand(HEADS, dtype=torch.float64, requires_grad=True)
    table = torch.randn(6, HEADS, dtype=torch.float64, requires_grad=True)
    bias = AddedScores(dense) + ALiBi(slopes) + RelativeBuckets(table, max_distance=5)
    assert bias.tensors() == (dense, slopes, table)
    together = whole(bias, at)
    apart = whole(AddedScores(dense), at) + whole(ALiBi(slopes), at)
    torch.testing.assert_close(together, apart + whole(RelativeBuckets(table, max_distance=5), at))
    renewed = bias.with_tensors(*(t.detach().clone() for t in bias.tensors()))
    torch.testing.assert_close(whole(renewed, at), together)

    # The gradient in blocks is the gradient of the whole.
    grad = torch.randn_like(together)
    want = torch.autograd.grad(together, bias.tensors(), grad)
    into = tuple(torch.zeros_like(t) for t in bias.tensors())
    cols = torch.tensor([0, 2, 3, 6]), torch.tensor([1, 4, 5])
    for rows in (slice(0, 2), slice(2, Q)):
        for part in cols:
            bias.backward(at, rows, part, grad[:, :, rows][..., part], into)
    for got, expected in zip(into, want, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("kind", ["alibi", "relative"])
def test_gradcheck(kind: str) -> None:
    at = frame((), q_pos=torch.tensor([9, 0, 3, 5, 6]))

    def scores(tensor: torch.Tensor) -> torch.Tensor:
        bias = ALiBi(tensor) if kind == "alibi" else RelativeBuckets(tensor, max_distance=5)
        return bias.block(at, slice(0, Q), slice(0, K))

    shape = (HEADS,) if kind == "alibi" else (6, HEADS)
    assert torch.autograd.gradcheck(scores, (torch.randn(shape, dtype=torch.float64, requires_grad=True),))
