"""Complaints about other libraries' attention functions: each thread's own case, and the kind behind it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from headwise import (
    AddedScores,
    ALiBi,
    Allow,
    Causal,
    Documents,
    Entropy,
    KeyLengths,
    LogSumExp,
    Window,
    attention,
    explain,
    merge,
)
from headwise.attention import problem, solve

NAN, INF = float("nan"), float("inf")
KERNELS = ["auto", "torch", "tiled", "reference"]


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


# Queries that may attend to nothing


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("written", ["bool", "-inf", "finfo.min"])
def test_103749_one_meaning_of_a_hidden_row(written: str, kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/103749, /110213, /103963: a row that is all masked gave 0,
    NaN or the mean of the values, by version and backend. Here False and -inf are both nothing, which is 0;
    finfo.min is a large number, and a row of nothing but it attends evenly."""
    q, k, v = drawn((1, 2, 3, 5), (1, 2, 7, 5), (1, 2, 7, 5))
    hidden = torch.zeros(3, 7, dtype=torch.bool)
    hidden[1] = True
    if written == "bool":
        out = attention(q, k, v, mask=Allow(~hidden), kernel=kernel)
    else:
        number = -INF if written == "-inf" else torch.finfo(q.dtype).min
        out = attention(q, k, v, bias=torch.zeros(3, 7).double().masked_fill(hidden, number), kernel=kernel)
    want = attention(q, k, v, kernel=kernel)
    torch.testing.assert_close(out[:, :, [0, 2]], want[:, :, [0, 2]])
    nothing = v.mean(-2) if written == "finfo.min" else torch.zeros(1, 2, 5).double()
    torch.testing.assert_close(out[:, :, 1], nothing)


@pytest.mark.parametrize("kernel", KERNELS)
def test_101967_garbage_behind_the_mask(kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/101967, keras#15390, tensorflow#45854: v[:, 5:] = nan, of
    which only the first five keys are valid. torch's own function lets it through."""
    q, k, v = drawn((2, 3, 4, 5), (2, 3, 8, 5), (2, 3, 8, 5))
    want = attention(q, k[:, :, :5], v[:, :, :5], kernel=kernel)
    valid = torch.arange(8) < 5
    for bad in (NAN, INF):
        k[:, :, 5:], v[:, :, 5:] = bad, bad
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        for mask in (Allow(valid), KeyLengths(5), KeyLengths(torch.tensor([5, 5]))):
            out = attention(*leaves, mask=mask, kernel=kernel)
            torch.testing.assert_close(out, want)
            for grad in torch.autograd.grad(out.square().sum(), leaves):
                assert grad.isfinite().all()
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=valid.expand(2, 3, 4, 8))
    assert theirs.isnan().any(), "torch has mended this: the complaint can go"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 600])
def test_127055_wholly_masked_blocks_have_gradients(length: int, kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/127055, /178251, /125674, /196678: NaN in the backward pass
    where a block is masked as a whole; the first at n = 600 with a band, the last at n % 128 == 64."""
    q, k, v, d_out = drawn(*[(1, 2, length, 5)] * 4)
    leaves = [t.requires_grad_() for t in (q, k, v)]
    near = (torch.arange(length)[:, None] - torch.arange(length)).abs() <= 5
    scores = (q @ k.mT / 5**0.5).masked_fill(~near, -INF)
    want = torch.autograd.grad(scores.softmax(-1) @ v, leaves, d_out)
    for mask in (Window(5, 5), Allow(near)):
        got = torch.autograd.grad(attention(*leaves, mask=mask, kernel=kernel), leaves, d_out)
        for mine, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(mine, theirs)


# Causality and alignment


@pytest.mark.parametrize("kernel", KERNELS)
def test_108108_one_query_over_a_cache_sees_all_of_it(kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/108108, /103082, /144858, /126873, mlx#2835, xformers#931:
    is_causal is aligned at the start, so a step of decoding (1 query, 8 keys) sees key 0 alone."""
    q, k, v = drawn((1, 2, 1, 5), (1, 2, 8, 5), (1, 2, 8, 5))
    torch.testing.assert_close(
        attention(q, k, v, mask=Causal(), kernel=kernel), attention(q, k, v, kernel=kernel)
    )
    at_start = attention(q, k, v, mask=Causal(), align="start", kernel=kernel)
    torch.testing.assert_close(at_start, v[:, :, :1])
    torch.testing.assert_close(at_start, F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_2967_more_queries_than_keys(kernel: str) -> None:
    """https://github.com/ml-explore/mlx/pull/2967, and torch's causal_lower_right(5, 2): its text says NaN
    and its code gives 0. Here the first 5 - 2 queries see nothing: 0, and log-sum-exp -inf."""
    q, k, v = drawn((1, 2, 5, 3), (1, 2, 2, 3), (1, 2, 2, 3))
    out, lse = solve(problem(q, k, v, mask=Causal()), kernel=kernel)
    assert (out[:, :, :3] == 0).all()
    assert (lse[:, :, :3] == -INF).all()
    torch.testing.assert_close(out[:, :, 3], v[:, :, 0])
    torch.testing.assert_close(out[:, :, 4:], attention(q[:, :, 4:], k, v))


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.4},
    "observed": {"observe": [Entropy()]},
    "softcap": {"softcap": 1.5},
    "sinks": {"sinks": torch.ones(4, dtype=torch.float64)},
    "bias": {"bias": ALiBi.for_heads(4)},
    "lengths": {"mask": KeyLengths(torch.tensor([11, 9]))},
    "prefix of nothing": {"mask": ~KeyLengths(0)},
    "one dimension more": {},
    "one dimension less": {},
    "other values": {},
}


@pytest.mark.parametrize("name", list(OPTIONS))
def test_23038_no_option_drops_the_mask(name: str) -> None:
    """https://github.com/keras-team/keras/issues/23038: the causal mask was left out in silence with dropout,
    with returned scores, and with inputs that weren't 4-D. What comes later never moves what was before."""
    q, k, v, new = drawn(
        (2, 4, 11, 5), (2, 2, 11, 5), (2, 2, 11, 7 if name == "other values" else 5), (2, 2, 11, 7)
    )
    options = dict(OPTIONS[name])
    options["mask"] = Causal() & options["mask"] if "mask" in options else Causal()
    if name == "one dimension more":
        q, k, v = q[None], k[None], v[None]
    if name == "one dimension less":
        q, k, v, new = q[0], k[0], v[0], new[0]

    def run(k: Tensor, v: Tensor) -> Tensor:
        if "dropout" in options:
            options["generator"] = torch.Generator().manual_seed(1)
        out = attention(q, k, v, **options)
        return out[0] if isinstance(out, tuple) else out

    before = run(k, v)
    for t in (0, 4, 9):
        later_k, later_v = k.clone(), v.clone()
        later_k[..., t + 1 :, :] = 50 * new[..., t + 1 :, : k.shape[-1]]
        later_v[..., t + 1 :, :] = 50 * new[..., t + 1 :, : v.shape[-1]]
        after = run(later_k, later_v)
        torch.testing.assert_close(after[..., : t + 1, :], before[..., : t + 1, :])
        assert not torch.allclose(after[..., t + 1 :, :], before[..., t + 1 :, :])


# Polarity


def test_170400_masks_say_what_they_mean() -> None:
    """https://github.com/pytorch/pytorch/issues/170400, /120668, rasbt/LLMs-from-scratch#1061,
    torchTextClassifiers#92, braindecode#902: True means ignore in one class and attend in a function of
    the same library, and a float mask of 0 and 1 is added to the scores in silence."""
    q, k, v = drawn((1, 2, 3, 5), (1, 2, 7, 5), (1, 2, 7, 5))
    keep = torch.arange(7) < 4
    want = attention(q, k[:, :, :4], v[:, :, :4])
    torch.testing.assert_close(attention(q, k, v, mask=Allow(keep)), want)
    torch.testing.assert_close(attention(q, k, v, mask=Allow.from_ignored(~keep)), want)
    for mask in (keep, keep.float(), keep.long(), keep.int()):
        with pytest.raises(TypeError, match="Allow"):
            attention(q, k, v, mask=mask)
    with pytest.raises(ValueError, match="only 0 and 1"):
        attention(q, k, v, bias=keep.double())
    with pytest.raises(ValueError, match="only 0 and 1"):
        AddedScores(keep.float())
    for integers in (keep, keep.long()):
        with pytest.raises(TypeError, match="mask=Allow"):
            attention(q, k, v, bias=integers)


# Log-sum-exp, higher derivatives, precision


@pytest.mark.parametrize("kernel", KERNELS)
def test_404_log_sum_exp_has_a_gradient(kernel: str) -> None:
    """flash-attention#404, #889, #1137, #141; https://github.com/pytorch/pytorch/pull/189784; JAX's
    return_residual, whose gradient is exactly 0: rings, merges and sinks on top of it train wrongly.
    A z-loss on the log-sum-exp, against the formula."""
    q, k, v = (t.requires_grad_() for t in drawn((2, 3, 5, 7), (2, 3, 11, 7), (2, 3, 11, 7)))
    _, lse = solve(problem(q, k, v), kernel=kernel)
    got = torch.autograd.grad(lse.square().sum(), (q, k))
    want = torch.autograd.grad((q @ k.mT / 7**0.5).logsumexp(-1).square().sum(), (q, k))
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine, theirs)
    seen = attention(q, k, v, observe=[LogSumExp()], kernel=kernel)[1]
    torch.testing.assert_close(torch.autograd.grad(seen.log_sum_exp.square().sum(), (q, k)), want)


@pytest.mark.parametrize("kernel", ["auto", "tiled", "reference"])
def test_1137_a_sink_is_one_more_column(kernel: str) -> None:
    """flash-attention#1137: a learned sink equals softmax with one more column, gradients too. And it may
    be put on afterwards, by merging with a part that is nothing but the sink."""
    q, k, v, sinks = (t.requires_grad_() for t in drawn((2, 3, 5, 7), (2, 3, 11, 7), (2, 3, 11, 7), (3,)))
    scores = torch.cat([q @ k.mT / 7**0.5, sinks.view(1, 3, 1, 1).expand(2, 3, 5, 1)], -1)
    want = scores.softmax(-1)[..., :-1] @ v
    got = attention(q, k, v, sinks=sinks, kernel=kernel)
    torch.testing.assert_close(got, want)
    leaves = (q, k, v, sinks)
    d_out = torch.randn_like(want)
    want_grads = torch.autograd.grad(want, leaves, d_out)
    for mine, theirs in zip(torch.autograd.grad(got, leaves, d_out), want_grads, strict=True):
        torch.testing.assert_close(mine, theirs)
    plain = solve(problem(q, k, v), kernel=kernel)
    sink = (torch.zeros_like(plain[0]), sinks.view(1, 3, 1).expand_as(plain[1]))
    later, _ = merge([plain, sink])
    torch.testing.assert_close(later, want)
    for mine, theirs in zip(torch.autograd.grad(later, leaves, d_out), want_grads, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_116350_every_derivative_by_the_default_call() -> None:
    """https://github.com/pytorch/pytorch/issues/116350, /116348, /98164, /117016, /154226,
    learn2learn#429, diffusers#5678, flash-attention#1672: the default call of other functions raises for a
    second derivative, a forward derivative, and per-sample gradients; a context manager mends it. Here
    the default call has them all."""
    q, k, v = drawn((3, 2, 5, 4), (3, 2, 5, 4), (3, 2, 5, 4))

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, mask=Causal()).square().sum()

    leaf = q.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, k, v), leaf, create_graph=True)
    (second,) = torch.autograd.grad(grad.square().sum(), leaf)
    with sdpa_kernel(SDPBackend.MATH):
        again = q.clone().requires_grad_()
        theirs = F.scaled_dot_product_attention(again, k, v, is_causal=True).square().sum()
        (their_grad,) = torch.autograd.grad(theirs, again, create_graph=True)
        (want,) = torch.autograd.grad(their_grad.square().sum(), again)
    torch.testing.assert_close(second, want)
    tangent = torch.ones_like(q)
    _, pushed = torch.func.jvp(lambda q: loss(q, k, v), (q,), (tangent,))
    torch.testing.assert_close(pushed, (grad * tangent).sum().detach())
    each = torch.vmap(torch.func.grad(loss))(q, k, v)
    torch.testing.assert_close(each, grad.detach())
    assert torch.func.hessian(lambda q: loss(q, k[0], v[0]))(q[0]).isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_60939_huge_scores(dtype: torch.dtype, kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/60939, /99012, /111276, /84396, transformers PR#29285:
    q = k = 300 at width 64 is a score of 720 000, which float16 doesn't hold. Scores and softmax are
    float32 here: equal scores give the mean of the values, and every gradient is finite."""
    leaves = [torch.full((1, 2, 5, 64), 300.0, dtype=dtype).requires_grad_() for _ in range(2)]
    v = drawn((1, 2, 5, 64), dtype=dtype)[0].requires_grad_()
    out, lse = solve(problem(*leaves, v), kernel=kernel)
    assert lse.dtype == torch.float32
    mean = v.detach().double().mean(-2, keepdim=True).expand_as(v)
    error = (out.double() - mean).abs().max().item()
    assert error <= 2 * torch.finfo(dtype).eps
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), [*leaves, v]))
    # To the bit; but the compiled kernel, which `auto` takes, makes w v / w in float32, rounded twice.
    eps = 2 * torch.finfo(dtype).eps if kernel == "auto" and dtype == torch.float32 else 0
    peaked = leaves[0].detach().clone()
    peaked[..., 2, :] = 310.0  # 24 000 above the others before the scale, in every row
    torch.testing.assert_close(
        attention(leaves[0], peaked, v, kernel=kernel), v[..., 2:3, :].expand_as(v), rtol=eps, atol=0
    )


@pytest.mark.parametrize("kernel", ["auto", "tiled", "reference"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("low", [torch.float16, torch.bfloat16])
def test_84396_autocast_does_not_reach_inside(low: torch.dtype, dtype: torch.dtype, kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/84396, diffusers#13922: autocast rounds scores and softmax.
    Here it changes nothing: the same bits within and without, forward and backward."""
    for kind in (dtype, torch.float32):
        q, k, v = drawn((2, 4, 7, 16), (2, 2, 11, 16), (2, 2, 11, 16), dtype=kind)
        leaves = [t.requires_grad_() for t in (q, k, v)]
        options: dict[str, Any] = {"mask": Causal(), "kernel": kernel}
        want = attention(*leaves, **options)
        want_grads = torch.autograd.grad(want.float().square().sum(), leaves)
        with torch.autocast("cpu", dtype=low):
            got, seen = attention(*leaves, observe=[Entropy()], **options)
            assert seen.entropy.dtype == torch.float32
        assert torch.equal(got, want)
        assert got.dtype == kind
        for mine, theirs in zip(
            torch.autograd.grad(got.float().square().sum(), leaves), want_grads, strict=True
        ):
            assert torch.equal(mine, theirs)


# Choice of backend, sizes


def test_46960_no_option_falls_to_a_quadratic_path() -> None:
    """transformers#46960, unsloth#8225 (71 GB), Comfy#15135 (45.64 GiB), #15190, sapiens2#3, MOSS#39;
    https://github.com/pytorch/pytorch/issues/139586, pull/190523: grouped heads with a mask, float32, or
    head_dim > 256 held all scores, in silence. Here strict=True is a promise that any of them keeps."""
    for d in (64, 257):
        q, k, v = drawn((1, 4, 9, d), (1, 2, 9, d), (1, 2, 9, d), dtype=torch.float32)
        mask = Causal() & KeyLengths(torch.tensor([8]))
        choice = explain(q, k, v, mask=mask, strict=True)
        assert choice.kernel.linear_memory
        assert all(name in str(choice) for name in ("torch", "flex", "tiled", "reference"))
        attention(q, k, v, mask=mask, strict=True)
    with pytest.raises(ValueError, match="strict=True"):
        attention(q, k, v, kernel="reference", strict=True)


@pytest.mark.parametrize("kernel", ["auto", "tiled", "reference"])
def test_103668_values_of_another_width(kernel: str) -> None:
    """https://github.com/pytorch/pytorch/issues/103668, /27623, /120793; flash-attention#753, #980, #1471;
    TransformerEngine#2629, Megatron-LM#6922, transformers PR#47451: d_v = d_k is demanded, so MLA's 192
    and 128 are padded by hand. Here d_k = 13, d_v = 17, 19 queries, 23 keys; padded and not are equal."""
    for d_k, d_v in ((13, 17), (192, 128)):
        q, k, v = drawn((2, 6, 19, d_k), (2, 3, 23, d_k), (2, 3, 23, d_v))
        out = attention(q, k, v, mask=Causal(), kernel=kernel)
        assert out.shape == (2, 6, 19, d_v)
        wide = max(d_k, d_v)
        padded = attention(
            F.pad(q, (0, wide - d_k)),
            F.pad(k, (0, wide - d_k)),
            F.pad(v, (0, wide - d_v)),
            mask=Causal(),
            scale=d_k**-0.5,
        )
        torch.testing.assert_close(out, padded[..., :d_v])
        assert (padded[..., d_v:] == 0).all()


# Packed documents


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
def test_35032_documents_are_deaf_to_each_other(causal: bool, kernel: str) -> None:
    """transformers#35032, vllm-omni#5865, trl#3673, transformers PR#46634, nanoVLM#204: with a mask of all
    ones, or with a cache, the second document moved when the first did. Here it doesn't by a single bit,
    and no gradient crosses."""
    ids = torch.tensor([0] * 7 + [1] * 11)
    mask = Documents(ids) & Causal() if causal else Documents(ids)
    q, k, v, other = drawn(*[(1, 3, 18, 5)] * 4)
    before = attention(q, k, v, mask=mask, kernel=kernel)
    changed = [torch.cat([99 * other[:, :, :7], t[:, :, 7:]], -2).requires_grad_() for t in (q, k, v)]
    after = attention(*changed, mask=mask, kernel=kernel)
    assert torch.equal(after[:, :, 7:], before[:, :, 7:])
    assert not torch.allclose(after[:, :, :7], before[:, :, :7])
    for grad in torch.autograd.grad(after[:, :, 7:].square().sum(), changed):
        assert (grad[:, :, :7] == 0).all()
        assert (grad[:, :, 7:] != 0).any()
    alone = attention(*(t[:, :, 7:] for t in (q, k, v)), mask=Causal() if causal else None, kernel=kernel)
    torch.testing.assert_close(after[:, :, 7:], alone)


@pytest.mark.parametrize("kernel", KERNELS)
def test_padding_at_the_end_changes_nothing(kernel: str) -> None:
    """The same kind: a batch of two texts gives what each gives alone."""
    q, k, v = drawn(*[(2, 3, 11, 5)] * 3)
    lengths = torch.tensor([11, 4])
    out = attention(q, k, v, mask=KeyLengths(lengths), kernel=kernel)
    torch.testing.assert_close(out[1, :, :4], attention(*(t[1, :, :4] for t in (q, k, v)), kernel=kernel))
    moved = [t.clone() for t in (k, v)]
    for t in moved:
        t[1, :, 4:] = 7.5
    assert torch.equal(attention(q, *moved, mask=KeyLengths(lengths), kernel=kernel), out)
