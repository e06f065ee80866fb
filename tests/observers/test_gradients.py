"""Every observer that can be differentiated is, block by block as in one piece."""

from __future__ import annotations

from dataclasses import replace

import dense_observations as dense
import pytest
import torch

from headwise.kernels import measure as measuring
from headwise.kernels.measure import measure
from headwise.masks import Causal, KeyLengths
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Offset,
    Spread,
    TopKeys,
    Weights,
)

OBSERVERS = [
    Weights(),
    Weights(rows=(-1, 0), heads=(3, 0)),
    Entropy(),
    LogSumExp(),
    Distance(),
    Spread(),
    KeyMass(),
    KeyMass(rows=(2, 4)),
    TopKeys(2),
    MaxWeight(),
    Map((3, 2)),
    Offset(-1),
    Mass([0, 2]),
    Mass(torch.tensor([0, 1, -1, 1, 0]), classes=2),
]


def tensors(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [part for part in parts if part.is_floating_point()]


def finite(value):
    """-inf, the log-sum-exp of a dead row, is a constant."""
    return torch.where(value == float("-inf"), 0.0, value)


@pytest.fixture(params=[True, False], ids=["blocks of few rows", "one block"])
def blocks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(measuring, "CPU_BLOCK", 320)


@pytest.mark.parametrize("observer", OBSERVERS, ids=lambda observer: observer.name)
@pytest.mark.parametrize("setting", ["bidirectional", "dead rows", "sinks, bias, softcap"])
@pytest.mark.usefixtures("blocks")
def test_gradcheck(observer, setting):
    options = {
        "bidirectional": {},
        "dead rows": {"mask": Causal() & KeyLengths(torch.tensor([4, 0])), "q_len": 7},
        "sinks, bias, softcap": {"mask": Causal(), "sinks": True, "bias": True, "softcap": 2.0},
    }[setting]
    p = dense.problem(**{"heads": 4, "q_len": 5, "k_len": 5, "d_k": 2, "d_v": 1} | options)
    inputs = [
        p.q,
        p.k,
        *(() if p.sinks is None else (p.sinks,)),
        *(() if p.bias is None else p.bias.tensors()),
    ]
    for tensor in inputs:
        tensor.requires_grad_()

    def statistics(q, k, *rest):
        sinks = rest[0] if p.sinks is not None else None
        bias = p.bias.with_tensors(rest[-1]) if p.bias is not None else None
        seen = measure(replace(p, q=q, k=k, sinks=sinks, bias=bias), [observer])
        return [finite(t) for t in tensors(seen[observer])]

    assert torch.autograd.gradcheck(statistics, inputs, fast_mode=True)


def test_blocks_give_the_gradients_of_the_whole(monkeypatch):
    p = dense.problem(mask=Causal() & KeyLengths(torch.tensor([0, 150])), sinks=True)
    inputs = [p.q, p.k, p.sinks]
    for tensor in inputs:
        tensor.requires_grad_()
    observers = [observer for observer in OBSERVERS if "classes" not in observer.name]
    grads = []
    for budget in (50_000, 2**30):
        monkeypatch.setattr(measuring, "CPU_BLOCK", budget)
        seen = measure(p, observers)
        loss = sum(
            (i + 1) * finite(t).square().sum() for i, r in enumerate(seen.values()) for t in tensors(r)
        )
        grads.append(torch.autograd.grad(loss, inputs))
    for small, large in zip(*grads, strict=True):
        torch.testing.assert_close(small, large, rtol=1e-10, atol=1e-10)


def test_values_have_gradients_and_indices_do_not():
    p = dense.problem(q_len=5, k_len=7)
    p.q.requires_grad_()
    seen = measure(p, [TopKeys(3), MaxWeight()])
    assert seen.top_keys.weights.requires_grad
    assert seen.max_weight.value.requires_grad
    assert not seen.top_keys.indices.requires_grad
    assert not seen.max_weight.key.requires_grad
    with torch.no_grad():
        assert not measure(p, [Weights()]).weights.requires_grad


def test_nan_in_masked_keys_reaches_no_gradient():
    p = dense.problem((2,), q_len=11, k_len=13, mask=KeyLengths(torch.tensor([5, 7])))
    clean = [t.detach().clone().requires_grad_() for t in (p.q, p.k)]
    dirty = [p.q.clone().requires_grad_(), p.k.clone()]
    dirty[1][:, :, 7:] = float("nan")
    dirty[1].requires_grad_()
    grads = []
    for q, k in (clean, dirty):
        seen = measure(replace(p, q=q, k=k), [Entropy(), Distance(), TopKeys(2)])
        loss = seen.entropy.sum() + seen.distance.square().sum() + seen.top_keys.weights.sum()
        grads.append(torch.autograd.grad(loss, (q, k)))
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_nan_in_a_live_key_reaches_only_the_rows_that_see_it():
    p = dense.problem((2,), q_len=11, k_len=11, mask=Causal())
    p.k[0, 0, 5] = float("nan")  # key head 0 serves query heads 0, 1 and 2
    seen = measure(p, [Entropy(), MaxWeight()])
    bad = torch.zeros_like(seen.entropy, dtype=torch.bool)
    bad[0, :3, 5:] = True
    assert torch.equal(seen.entropy.isnan(), bad)
    assert torch.equal(seen.max_weight.value.isnan(), bad)
    assert seen.row_sum_error.isnan()


def test_transforms():
    """vmap over a batch, jacobians and forward derivatives of a statistic."""
    p = dense.problem((), q_len=5, k_len=5, mask=Causal())

    def entropy(q, k):
        return measure(replace(p, q=q, k=k), [Entropy()]).entropy

    q, k = torch.randn(3, 6, 5, 5, dtype=torch.float64), torch.randn(3, 2, 5, 5, dtype=torch.float64)
    each = torch.stack([entropy(a, b) for a, b in zip(q, k, strict=True)])
    torch.testing.assert_close(torch.func.vmap(entropy)(q, k), each)
    rows = torch.func.jacrev(entropy)(q[0], k[0])
    columns = torch.func.jacfwd(entropy)(q[0], k[0])
    torch.testing.assert_close(rows, columns)
