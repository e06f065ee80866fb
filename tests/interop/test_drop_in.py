"""The drop-in against torch.nn.MultiheadAttention: same face, same numbers."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from typing import Any

import pytest
import torch
from drop_in_cases import (
    BATCH,
    HEAD_DIM,
    HEADS,
    KDIM,
    Q_LEN,
    VDIM,
    WIDTH,
    Case,
    cases,
    inputs,
    pair,
    plain_torch,
)
from hypothesis import given, settings
from torch import Tensor, nn

from headwise.interop.torch import MultiheadAttention


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@settings(max_examples=120, deadline=None)
@given(cases())
def test_equals_torch(case: Case) -> None:
    theirs, ours = pair(**case.options)
    theirs.train(case.training)
    ours.train(case.training)
    query, key, value = inputs(case)
    how = {**case.masks, "need_weights": case.need_weights, "average_attn_weights": case.average}
    with torch.set_grad_enabled(case.grad):
        expected, expected_weights = plain_torch(theirs, query, key, value, **how)
        out, weights = ours(query, key, value, **how)
    assert out.shape == expected.shape
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-12)
    if case.need_weights:
        assert weights is not None
        assert weights.shape == expected_weights.shape
        torch.testing.assert_close(weights, expected_weights, rtol=1e-10, atol=1e-12)
    else:
        assert weights is None
        assert expected_weights is None
    if case.grad:
        _same_gradients(theirs, ours, expected, out, expected_weights, weights)


def _same_gradients(
    theirs: nn.Module,
    ours: nn.Module,
    expected: Tensor,
    out: Tensor,
    expected_weights: Tensor | None,
    weights: Tensor | None,
) -> None:
    down = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(3))
    losses = [(expected * down).sum(), (out * down).sum()]
    if weights is not None and expected_weights is not None:
        losses = [losses[0] + expected_weights.square().sum(), losses[1] + weights.square().sum()]
    wanted = torch.autograd.grad(losses[0], list(theirs.parameters()), allow_unused=True)
    got = torch.autograd.grad(losses[1], list(ours.parameters()), allow_unused=True)
    for (name, _), one, other in zip(theirs.named_parameters(), wanted, got, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-11, msg=lambda m, name=name: f"{name}: {m}")


def test_signatures_are_torchs() -> None:
    for name in ("__init__", "forward"):
        theirs = inspect.signature(getattr(nn.MultiheadAttention, name)).parameters
        ours = inspect.signature(getattr(MultiheadAttention, name)).parameters
        assert [(p.name, p.default, p.kind) for p in ours.values()] == [
            (p.name, p.default, p.kind) for p in theirs.values()
        ]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": KDIM},
    {"kdim": KDIM, "vdim": VDIM, "bias": False, "batch_first": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parameters_and_random_numbers_are_torchs(options: dict[str, Any]) -> None:
    states, after = [], []
    for kind in (nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(11)
        module = kind(WIDTH, HEADS, **options)
        module._reset_parameters()
        states.append(module.state_dict())
        after.append(torch.rand(()))
    assert list(states[0]) == list(states[1])
    for name, theirs in states[0].items():
        assert torch.equal(theirs, states[1][name]), name
    assert torch.equal(*after)  # as many random numbers were drawn


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_checkpoints_load_both_ways(options: dict[str, Any]) -> None:
    theirs, ours = nn.MultiheadAttention(WIDTH, HEADS, **options), MultiheadAttention(WIDTH, HEADS, **options)
    ours.load_state_dict(theirs.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    other = MultiheadAttention(WIDTH, HEADS, **options)
    theirs.load_state_dict(other.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), theirs.parameters(), strict=True))


def test_copies_and_pickles() -> None:
    _, ours = pair(batch_first=True)
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    for other in (
        copy.deepcopy(ours),
        pickle.loads(pickle.dumps(ours)),
        torch.load(file, weights_only=False),
    ):
        assert type(other) is MultiheadAttention
        assert torch.equal(other(x, x, x)[0], ours(x, x, x)[0])


def test_packed_parts_stand_where_code_for_separate_ones_looks() -> None:
    ours = MultiheadAttention(WIDTH, HEADS)
    for n, part in enumerate((ours.q_proj_weight, ours.k_proj_weight, ours.v_proj_weight)):
        assert torch.equal(part, ours.in_proj_weight[n * WIDTH : (n + 1) * WIDTH])
    assert not any(name.endswith("_proj_weight") for name in ours.state_dict() if name != "in_proj_weight")
    separate = MultiheadAttention(WIDTH, HEADS, kdim=KDIM)
    assert separate.in_proj_weight is None
    assert separate.k_proj_weight.shape == (WIDTH, KDIM)


def test_output_can_be_viewed_as_torchs() -> None:
    """torch's output is contiguous where the sequence comes first, and code relies on it."""
    _, ours = pair()
    out, _ = ours(*[torch.randn(Q_LEN, BATCH, WIDTH, dtype=torch.float64)] * 3)
    assert out.view(Q_LEN * BATCH, WIDTH).shape == (Q_LEN * BATCH, WIDTH)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_types(dtype: torch.dtype) -> None:
    theirs, ours = pair(batch_first=True)
    theirs.to(dtype)
    ours.to(dtype)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=dtype)
    expected, expected_weights = plain_torch(theirs, x, x, x)
    out, weights = ours(x, x, x)
    assert out.dtype == weights.dtype == dtype
    close = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}[dtype]
    torch.testing.assert_close(out, expected, rtol=close, atol=close)
    torch.testing.assert_close(weights, expected_weights, rtol=close, atol=close)


def test_dropout_only_while_training_and_weights_are_from_before_it() -> None:
    _, ours = pair(dropout=0.5, batch_first=True)
    x = torch.randn(BATCH, 17, WIDTH, dtype=torch.float64)
    still, _ = ours.eval()(x, x, x)
    assert torch.equal(still, ours(x, x, x)[0])
    dropped, weights = ours.train()(x, x, x)
    assert not torch.allclose(dropped, still)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, 17, dtype=torch.float64))
    torch.manual_seed(5)
    first, _ = ours(x, x, x)
    torch.manual_seed(5)
    assert torch.equal(first, ours(x, x, x)[0])


@pytest.mark.parametrize("extra", [{}, {"add_bias_kv": True, "add_zero_attn": True}], ids=str)
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_is_causal_hides_the_future(extra: dict[str, Any], need_weights: bool, training: bool) -> None:
    _, ours = pair(batch_first=True, **extra)
    ours.train(training)
    nothing_hidden = torch.zeros(Q_LEN, Q_LEN, dtype=torch.bool)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    changed = x.clone()
    changed[:, 3:] += 1
    how = {"attn_mask": nothing_hidden, "is_causal": True, "need_weights": need_weights}
    with torch.no_grad():
        before, after = ours(x, x, x, **how)[0], ours(changed, changed, changed, **how)[0]
        real = nn.Transformer.generate_square_subsequent_mask(Q_LEN, dtype=torch.float64)
        asked = ours(x, x, x, attn_mask=real, need_weights=need_weights)[0]
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])
    torch.testing.assert_close(before, asked, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k_len", [3, 11])
def test_is_causal_counts_from_the_first_query_as_torchs(k_len: int) -> None:
    """Query i sees keys 0 .. i, however many keys there are (torch's is_causal; not headwise's default)."""
    theirs, ours = pair(batch_first=True)
    q, k = torch.randn(BATCH, Q_LEN, WIDTH).double(), torch.randn(BATCH, k_len, WIDTH).double()
    hidden = torch.ones(Q_LEN, k_len, dtype=torch.bool).triu(1)
    how = {"attn_mask": hidden, "is_causal": True, "need_weights": False}
    torch.testing.assert_close(ours(q, k, k, **how)[0], plain_torch(theirs, q, k, k, **how)[0])
    nothing_hidden = torch.zeros_like(hidden)
    same = ours(q, k, k, attn_mask=nothing_hidden, is_causal=True)[0]
    torch.testing.assert_close(same, ours(q, k, k, attn_mask=hidden)[0])


@pytest.mark.parametrize("training", [False, True])
def test_is_causal_without_a_mask_is_refused_in_every_mode(training: bool) -> None:
    _, ours = pair(batch_first=True)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    with torch.no_grad(), pytest.raises(RuntimeError, match="Need attn_mask"):
        ours.train(training)(x, x, x, is_causal=True)


def test_extra_keys_are_always_visible() -> None:
    """A row whose own keys are all hidden attends to the learned key and the zero key alone."""
    theirs, ours = pair(add_bias_kv=True, add_zero_attn=True, batch_first=True)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    hide = torch.ones(BATCH, Q_LEN, dtype=torch.bool)
    _, weights = ours(x, x, x, key_padding_mask=hide)
    assert torch.equal(weights[..., :Q_LEN], torch.zeros_like(weights[..., :Q_LEN]))
    torch.testing.assert_close(weights[..., Q_LEN:].sum(-1), torch.ones(BATCH, Q_LEN, dtype=torch.float64))
    expected, _ = plain_torch(theirs, x, x, x, key_padding_mask=hide)
    torch.testing.assert_close(ours(x, x, x, key_padding_mask=hide)[0], expected)


def test_float_masks_can_be_learned() -> None:
    theirs, ours = pair(batch_first=True)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    grads = []
    for module in (theirs, ours):
        mask = torch.linspace(-1, 1, Q_LEN * Q_LEN, dtype=torch.float64).view(Q_LEN, Q_LEN).requires_grad_()
        module(x, x, x, attn_mask=mask)[0].square().sum().backward()
        grads.append(mask.grad)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-9, atol=1e-11)


def test_zero_one_float_mask_is_added_with_a_warning() -> None:
    theirs, ours = pair(batch_first=True)
    x = torch.randn(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    mask = torch.eye(Q_LEN, dtype=torch.float64)
    with pytest.warns(UserWarning, match="only 0 and 1"):
        out, _ = ours(x, x, x, attn_mask=mask)
    torch.testing.assert_close(out, plain_torch(theirs, x, x, x, attn_mask=mask)[0])


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"query": torch.zeros(1, 2, 3, 4)}, AssertionError, "unbatched 2D or batched 3D"),
        (
            {"query": torch.zeros(BATCH, Q_LEN, 5)},
            AssertionError,
            "embedding dimension of 12 for query, but got 5",
        ),
        ({"key": torch.zeros(BATCH, 3, WIDTH)}, AssertionError, "do not match value's"),
        (
            {"key": torch.zeros(3, Q_LEN, WIDTH), "value": torch.zeros(3, Q_LEN, WIDTH)},
            ValueError,
            "batch size 2",
        ),
        ({"attn_mask": torch.zeros(Q_LEN, 3, dtype=torch.bool)}, RuntimeError, r"2D attn_mask is \(5, 3\)"),
        (
            {"attn_mask": torch.zeros(2, Q_LEN, Q_LEN, dtype=torch.bool)},
            RuntimeError,
            r"should be \(6, 5, 5\)",
        ),
        (
            {"attn_mask": torch.zeros(Q_LEN, Q_LEN, dtype=torch.int64)},
            AssertionError,
            "only bool and floating",
        ),
        (
            {"key_padding_mask": torch.zeros(BATCH, 3, dtype=torch.bool)},
            AssertionError,
            r"\(2, 5\), got \(2, 3\)",
        ),
        ({"key_padding_mask": torch.zeros(BATCH, Q_LEN, dtype=torch.uint8)}, ValueError, "torch.uint8"),
    ],
)
def test_wrong_input(change: dict[str, Tensor], kind: type[Exception], message: str) -> None:
    _, ours = pair(batch_first=True)
    x = torch.zeros(BATCH, Q_LEN, WIDTH, dtype=torch.float64)
    with pytest.raises(kind, match=message):
        ours(**({"query": x, "key": x, "value": x} | change))


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_equal_each_text_alone(layout: torch.layout) -> None:
    _, ours = pair(batch_first=True)
    texts = [torch.randn(n, WIDTH, dtype=torch.float64) for n in (3, 5)]
    nested = torch.nested.nested_tensor(texts, layout=layout)
    out, weights = ours(nested, nested, nested)
    assert out.is_nested
    assert out.layout == layout
    for text, part, seen in zip(texts, out.unbind(), weights, strict=True):
        alone, alone_weights = ours(text, text, text)
        torch.testing.assert_close(part, alone, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(seen[: len(text), : len(text)], alone_weights, rtol=1e-10, atol=1e-12)
        assert not seen[len(text) :].any()
    if layout == torch.jagged:
        assert (nested + out).is_nested  # equal lengths are known to be equal
    with pytest.raises(AssertionError, match="carries its lengths"):
        ours(nested, nested, nested, attn_mask=torch.zeros(5, 5, dtype=torch.bool))


def test_hooks_on_the_output_projection_fire() -> None:
    _, ours = pair()
    calls: list[int] = []
    ours.out_proj.register_forward_hook(lambda *_: calls.append(1))
    x = torch.randn(Q_LEN, BATCH, WIDTH, dtype=torch.float64)
    ours(x, x, x)
    assert calls == [1]


def test_attention_hooks_see_the_problem() -> None:
    _, ours = pair()
    seen: list[tuple[int, ...]] = []
    ours.attention_hooks.append(lambda problem, lse: seen.append((*problem.q.shape, *lse.shape)))
    x = torch.randn(Q_LEN, BATCH, WIDTH, dtype=torch.float64)
    ours(x, x, x, need_weights=False)
    assert seen == [(BATCH, HEADS, Q_LEN, HEAD_DIM, BATCH, HEADS, Q_LEN)]
