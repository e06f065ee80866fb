from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.training import smoothing_floor, token_loss


def dense(logits, targets, smoothing, pad_id):
    """The formula: targets written out as distributions."""
    classes = logits.shape[-1]
    log_p = logits.double() - logits.double().logsumexp(-1, keepdim=True)
    total = torch.zeros((), dtype=torch.float64)
    for row, target in zip(log_p.reshape(-1, classes), targets.flatten().tolist(), strict=True):
        if target != pad_id:
            q = torch.full((classes,), smoothing / classes, dtype=torch.float64)
            q[target] += 1 - smoothing
            total = total - (q * row).sum()
    return total


@given(
    rows=st.integers(0, 7),
    columns=st.integers(1, 5),
    classes=st.integers(1, 13),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    pad_id=st.sampled_from([None, 0, -100]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_loss_and_gradient_are_the_formulas(rows, columns, classes, smoothing, pad_id, seed):
    chance = torch.Generator().manual_seed(seed)
    targets = torch.randint(classes, (rows, columns), generator=chance)
    if pad_id == -100:
        targets[torch.rand(rows, columns, generator=chance) < 0.3] = -100
    logits = 3 * torch.randn(rows, columns, classes, generator=chance, dtype=torch.float64)
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    found = token_loss(mine, targets, smoothing=smoothing, pad_id=pad_id)
    expected = dense(theirs, targets, smoothing, pad_id)
    torch.testing.assert_close(found.loss_sum, expected)
    torch.testing.assert_close(found.nll_sum, dense(logits, targets, 0.0, pad_id))
    assert found.tokens == int((targets != pad_id).sum() if pad_id is not None else targets.numel())
    (5 * found.loss_sum).backward()
    if expected.requires_grad:
        (5 * expected).backward()
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_gradcheck():
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 3, 6, 2, 2])
    assert torch.autograd.gradcheck(
        lambda x: token_loss(x, targets, smoothing=0.1, pad_id=3).loss_sum, logits
    )


def test_the_floor_is_that_of_the_paper_and_a_perfect_model_reaches_it():
    assert f"{smoothing_floor(0.1, 37_000):.4f}" == "1.3769"
    assert f"{math.exp(smoothing_floor(0.1, 37_000)):.3f}" == "3.963"
    classes, eps = 7, 0.3
    best = torch.full((classes,), eps / classes, dtype=torch.float64)
    best[2] += 1 - eps
    logits = best.log()[None].requires_grad_()
    found = token_loss(logits, torch.tensor([2]), smoothing=eps)
    assert found.loss_sum.item() == pytest.approx(smoothing_floor(eps, classes), rel=1e-12)
    found.loss_sum.backward()
    assert float(logits.grad.abs().max()) < 1e-15
    assert smoothing_floor(0.0, 5) == 0


def test_nan_in_padding_cannot_leak():
    logits = torch.randn(3, 5)
    logits[1] = torch.nan
    logits.requires_grad_()
    found = token_loss(logits, torch.tensor([2, 0, 4]), smoothing=0.1, pad_id=0)
    found.loss_sum.backward()
    assert torch.isfinite(found.loss_sum)
    assert torch.equal(logits.grad[1], torch.zeros(5))
    assert torch.isfinite(logits.grad).all()


def test_bfloat16_logits_are_summed_in_float32():
    logits = torch.randn(11, 13).bfloat16()
    targets = torch.arange(11)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = token_loss(logits.requires_grad_(), targets, smoothing=0.1)
    assert found.loss_sum.dtype == torch.float32
    torch.testing.assert_close(found.loss_sum.double(), dense(logits, targets, 0.1, None), rtol=1e-6, atol=0)
    found.loss_sum.backward()
    assert logits.grad.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("targets", "options", "error", "words"),
    [
        (torch.tensor([0, 1]), {"smoothing": 1.0}, ValueError, "smoothing is 1.0"),
        (torch.tensor([0, 1, 2]), {}, ValueError, r"targets \[3\]"),
        (torch.tensor([0.0, 1.0]), {}, TypeError, "whole numbers"),
        (torch.tensor([0, 5]), {}, ValueError, "0..4"),
        (torch.tensor([-1, 4]), {"pad_id": 0}, ValueError, "from -1 to 4"),
    ],
)
def test_what_cannot_be_is_refused(targets, options, error, words):
    with pytest.raises(error, match=words):
        token_loss(torch.zeros(2, 5), targets, **options)
