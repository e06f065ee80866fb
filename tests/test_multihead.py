"""The layer: the paper's formula with every option, storage, and errors."""

from __future__ import annotations

import copy
import io
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from headwise.masks import Causal, KeyLengths, Mask, Window
from headwise.multihead import MultiHeadAttention
from headwise.observers import Entropy, Weights
from headwise.positions import AddedScores, ALiBi, RelativeBias, Rotary
from plain_layers import BATCH, D_K, F64, HEADS, K_IN, OUT, Q_IN, V_IN, L, S, build, draw


def by_hand(
    module: MultiHeadAttention,
    x: Tensor,
    memory: Tensor,
    values: Tensor,
    allow: Tensor,
    bias: Tensor | None = None,
    positions: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The layer head by head, from the formulas of its docstring alone."""
    m, group = module, module.num_heads // module.num_kv_heads
    heads = []
    for h in range(m.num_heads):
        g = h // group

        def part(linear: nn.Linear, data: Tensor, i: int, d: int) -> Tensor:
            rows = slice(i * d, (i + 1) * d)
            made = data @ linear.weight[rows].T
            return made if linear.bias is None else made + linear.bias[rows]

        q, k = part(m.q_proj, x, h, m.d_k), part(m.k_proj, memory, g, m.d_k)
        v = part(m.v_proj, values, g, m.d_v)
        if m.q_norm is not None and m.k_norm is not None:
            q, k = m.q_norm(q), m.k_norm(k)
        if m.rotary is not None and positions is not None:
            q = m.rotary(q[:, None], positions[0])[:, 0]
            k = m.rotary(k[:, None], positions[1])[:, 0]
        scores = q @ k.mT * (m.d_k**-0.5 if m.scale is None else m.scale)
        if m.softcap is not None:
            scores = m.softcap * torch.tanh(scores / m.softcap)
        if bias is not None:
            scores = scores + bias[..., h, :, :]
        weights = scores.exp() * allow
        total = weights.sum(-1, keepdim=True)
        if m.sinks is not None:
            total = total + m.sinks[h].exp()
        head = torch.where(total > 0, weights / total.clamp(min=1e-300), 0) @ v
        if m.gate_proj is not None:
            head = head * torch.sigmoid(x @ m.gate_proj.weight[h] + m.gate_proj.bias[h])[..., None]
        heads.append(head)
    y = torch.cat(heads, -1) @ m.out_proj.weight.T
    return y if m.out_proj.bias is None else y + m.out_proj.bias


OPTIONS: list[dict[str, Any]] = [
    {},
    {"projection_bias": True},
    {"projection_bias": True, "out_bias": False},
    {"out_bias": True, "num_kv_heads": 3},
    {"num_kv_heads": 1, "softcap": 2.0},
    {"sinks": True, "scale": 0.7},
    {"gate": True, "qk_norm": True},
    {"qk_norm": nn.LayerNorm, "rotary": Rotary(D_K, rotary_dim=6, layout="interleaved")},
    {
        "projection_bias": True,
        "num_kv_heads": 2,
        "softcap": 3.0,
        "sinks": True,
        "gate": True,
        "qk_norm": True,
        "rotary": Rotary(D_K, rotary_dim=12),
    },
]


@pytest.mark.parametrize("options", OPTIONS)
def test_self_attention_is_the_formula(options: dict[str, Any]) -> None:
    module, x, at = build(**options), draw(BATCH, L, Q_IN), torch.arange(L)
    everyone = torch.ones(L, L, dtype=F64)
    lengths = torch.tensor([L, 7])
    cases: list[tuple[Mask | None, Tensor]] = [
        (None, everyone),
        (Causal(), everyone.tril()),
        (Window(4, 2) & KeyLengths(lengths), everyone.tril(2).triu(-4) * (at < lengths[:, None, None])),
    ]
    for mask, allow in cases:
        y = module(x, mask=mask)
        torch.testing.assert_close(y, by_hand(module, x, x, x, allow, positions=(at, at)))
        assert y.shape == (BATCH, L, OUT)


@pytest.mark.parametrize("options", OPTIONS)
def test_cross_attention_is_the_formula(options: dict[str, Any]) -> None:
    module = build(memory_dim=K_IN, value_dim=V_IN, **options)
    x, memory, values = draw(BATCH, L, Q_IN), draw(BATCH, S, K_IN), draw(BATCH, S, V_IN)
    for align, first in (("end", S - L), ("start", 0)):
        at = torch.arange(first, first + L), torch.arange(S)
        allow = (at[1] <= at[0][:, None]).to(F64)
        y = module(x, memory, values=values, mask=Causal(), align=align)
        torch.testing.assert_close(y, by_hand(module, x, memory, values, allow, positions=at))
    assert y.shape == (BATCH, L, OUT)


def test_score_biases_add_up() -> None:
    x, extra = draw(BATCH, L, Q_IN), draw(BATCH, HEADS, L, L, seed=2)
    everyone = torch.ones(L, L, dtype=F64)
    learned = RelativeBias(HEADS, dtype=F64)
    at = torch.arange(L)
    table = learned().scores(at[:, None], at[None, :])
    for own, given, total in (
        (learned, None, table),
        (AddedScores(extra), None, extra),
        (None, extra, extra),
        (learned, extra, table + extra),
        (learned, AddedScores(extra), table + extra),
    ):
        module = build(score_bias=own)
        y = module(x, bias=given)
        torch.testing.assert_close(y, by_hand(module, x, x, x, everyone, total))
    y.sum().backward()
    assert learned.weight.grad is not None
    assert learned.weight.grad.abs().sum() > 0
    assert "score_bias.weight" in module.state_dict()


def test_alibi_and_positions_of_packed_texts() -> None:
    module = build(score_bias=ALiBi.for_heads(HEADS, dtype=F64), rotary=Rotary(D_K, rotary_dim=8))
    x, at = draw(BATCH, L, Q_IN), torch.tensor([list(range(L)), [*range(12), *range(7)]])
    allow = (at[:, None, :] <= at[:, :, None]).to(F64)
    bias = module.score_bias.scores(at[:, None, :, None], at[:, None, None, :])  # type: ignore[union-attr,operator]
    want = by_hand(module, x, x, x, allow, bias, positions=(at, at))
    torch.testing.assert_close(module(x, mask=Causal(), positions=at), want)


def test_leading_dimensions() -> None:
    module = build(rotary=Rotary(D_K, rotary_dim=8), gate=True, projection_bias=True)
    x = draw(2, 3, L, Q_IN)
    many = module(x, mask=Causal())
    for i in range(2):
        torch.testing.assert_close(many[i], module(x[i], mask=Causal()))
        for j in range(3):
            torch.testing.assert_close(many[i, j], module(x[i, j], mask=Causal()))
    for shape in ((0, L), (2, 0), (0,)):
        assert module(draw(*shape, Q_IN)).shape == (*shape, OUT)
    cross = build(memory_dim=K_IN, out_bias=True)
    y = cross(draw(2, 3, Q_IN), draw(2, 0, K_IN))  # nothing to attend to
    assert cross.out_proj.bias is not None
    torch.testing.assert_close(y, cross.out_proj.bias.expand(2, 3, OUT))


def test_query_that_sees_nothing_gives_the_output_bias() -> None:
    module, x = build(projection_bias=True), draw(BATCH, L, Q_IN).requires_grad_()
    y = module(x, mask=KeyLengths(torch.tensor([0, L])))
    torch.testing.assert_close(y[0], module.out_proj.bias.expand(L, OUT))
    y.sum().backward()
    assert x.grad is not None
    assert (x.grad[0] == 0).all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[-1]])
def test_gradcheck(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    sizes = {"input_dim": 2, "output_dim": 3, "d_k": 4, "d_v": 5, "dtype": F64}
    options = {**options, "rotary": Rotary(4)} if "rotary" in options else options
    module = MultiHeadAttention(7, 2, **sizes, **options)
    names = [name for name, _ in module.named_parameters()]

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, given, (x,), {"mask": Causal()})

    x = draw(2, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(run, (x, *module.parameters()))


def test_observations_do_not_change_the_output() -> None:
    module, x = build(rotary=Rotary(D_K, rotary_dim=8)), draw(BATCH, L, Q_IN)
    y, seen = module(x, mask=Causal(), observe=[Entropy(), Weights()])
    assert torch.equal(y, module(x, mask=Causal()))
    assert seen.weights.shape == (BATCH, HEADS, L, L)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(BATCH, HEADS, L, dtype=seen.weights.dtype))
    assert seen.entropy.shape == (BATCH, HEADS, L)


def test_attention_hooks_see_the_problem() -> None:
    module, x, seen = build(num_kv_heads=2), draw(BATCH, L, Q_IN), []
    module.attention_hooks.append(lambda problem, lse: seen.append((problem, lse)))
    module(x)
    ((problem, lse),) = seen
    assert problem.q.shape == (BATCH, HEADS, L, D_K)
    assert problem.k.shape == (BATCH, 2, L, D_K)
    assert lse.shape == (BATCH, HEADS, L)


def test_dropout_is_repeatable_and_only_in_training() -> None:
    module, x = build(dropout=0.3), draw(BATCH, L, Q_IN)
    still = build()
    still.load_state_dict(module.state_dict())

    def run() -> Tensor:
        return module(x, generator=torch.Generator().manual_seed(5))  # type: ignore[no-any-return]

    assert torch.equal(run(), run())
    assert not torch.allclose(run(), still(x))
    assert torch.equal(module.eval()(x), still(x))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_drops_the_same_weights_again(reentrant: bool) -> None:
    module, x = build(dropout=0.5, input_dim=K_IN, memory_dim=K_IN, value_dim=K_IN), draw(2, 7, K_IN)
    grads = []
    for call in (module, lambda x: checkpoint(module, x, use_reentrant=reentrant)):
        torch.manual_seed(0)
        leaf = x.clone().requires_grad_()
        call(leaf).sum().backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(*grads)
    own = torch.Generator().manual_seed(0)  # torch doesn't set this one back
    y = checkpoint(lambda x: module(x, generator=own), leaf, use_reentrant=reentrant)
    with pytest.raises(RuntimeError, match="Leave generator= out"):
        y.sum().backward()


def test_state_dict_is_stable() -> None:
    plain = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"]
    assert list(build().state_dict()) == plain
    module = build(projection_bias=True, qk_norm=True, gate=True, sinks=True, score_bias=RelativeBias(HEADS))
    biases = [name.replace("weight", "bias") for name in plain]
    extra = [
        "q_norm.weight",
        "k_norm.weight",
        "gate_proj.weight",
        "gate_proj.bias",
        "sinks",
        "score_bias.weight",
    ]
    assert sorted(module.state_dict()) == sorted([*plain, *biases, *extra])
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = build(projection_bias=True, qk_norm=True, gate=True, sinks=True, score_bias=RelativeBias(HEADS))
    other.reset_parameters()
    other.load_state_dict(torch.load(file, weights_only=True))
    x = draw(BATCH, L, Q_IN)
    assert torch.equal(other(x), module(x))
    assert torch.equal(copy.deepcopy(module)(x), module(x))


def test_initialisation_is_seeded_and_bounded_by_its_own_shape() -> None:
    torch.manual_seed(3)
    first = MultiHeadAttention(64, 4, input_dim=32, num_kv_heads=2, projection_bias=True)
    torch.manual_seed(3)
    second = MultiHeadAttention(64, 4, input_dim=32, num_kv_heads=2, projection_bias=True)
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b)
        if name.endswith("bias"):
            assert (a == 0).all()
        else:
            bound = math.sqrt(6 / sum(a.shape))
            assert bound * 0.98 < a.abs().max() <= bound


def test_meta_device_and_types() -> None:
    module = MultiHeadAttention(
        6, 2, qk_norm=True, gate=True, sinks=True, device="meta", dtype=torch.bfloat16
    )
    assert all(p.is_meta and p.dtype == torch.bfloat16 for p in module.parameters())
    ready = module.to_empty(device="cpu")
    ready.reset_parameters()
    assert ready.sinks is not None
    assert ready.q_proj.weight.isfinite().all()
    assert (ready.sinks == 0).all()


def test_repr_shows_sizes() -> None:
    text = repr(build(num_kv_heads=2, dropout=0.1, softcap=5.0))
    assert "num_heads=6, num_kv_heads=2, d_k=13, d_v=17, dropout=0.1, softcap=5.0" in text
