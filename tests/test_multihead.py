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

from headwise.cache import GrowingCache
from headwise.masks import Allow, Causal, KeyLengths, Mask, Window
from headwise.multihead import FusedRows, MultiHeadAttention
from headwise.observers import Entropy, Weights
from headwise.positions import AddedScores, ALiBi, RelativeBias, Rotary

# A different prime for every size: no two can be mixed up unnoticed.
BATCH, L, S = 2, 19, 23
Q_IN, K_IN, V_IN, OUT, D_K, D_V, HEADS = 3, 5, 7, 11, 13, 17, 6
F64 = torch.float64


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def build(**options: Any) -> MultiHeadAttention:
    torch.manual_seed(1)
    sizes = {"input_dim": Q_IN, "output_dim": OUT, "d_k": D_K, "d_v": D_V, "dtype": F64}
    module = MultiHeadAttention(29, HEADS, **{**sizes, **options})
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(("bias", "sinks")) or "norm" in name:
                parameter.normal_()
    return module


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


# Fused weights


@pytest.mark.parametrize("kv_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("layout", ["stacked", "per_head"])
def test_fused_weights_there_and_back(layout: Any, transposed: bool, bias: bool, kv_heads: int) -> None:
    module = build(num_kv_heads=kv_heads, projection_bias=bias)
    weight, fused_bias = module.fused_weight(layout, transposed=transposed)
    rows = HEADS * D_K + kv_heads * (D_K + D_V)
    assert weight.shape == ((Q_IN, rows) if transposed else (rows, Q_IN))
    assert (fused_bias is not None) == bias
    other = build(num_kv_heads=kv_heads, projection_bias=bias)
    other.reset_parameters()
    other.out_proj.load_state_dict(module.out_proj.state_dict())
    other.load_fused(weight, fused_bias, layout, transposed=transposed)
    x = draw(BATCH, L, Q_IN)
    assert torch.equal(other(x), module(x))


def test_fused_rows_on_paper() -> None:
    rows = FusedRows(num_heads=4, num_kv_heads=2, d_k=1, d_v=1)
    q, k, v = torch.tensor([0, 1, 2, 3]), torch.tensor([10, 11]), torch.tensor([20, 21])
    assert rows.join(q, k, v, "stacked").tolist() == [0, 1, 2, 3, 10, 11, 20, 21]
    assert rows.join(q, k, v, "per_head").tolist() == [0, 1, 10, 20, 2, 3, 11, 21]


def test_stacked_weights_are_torchs() -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=F64)
    nn.init.normal_(theirs.in_proj_bias)
    ours = MultiHeadAttention(12, 3, projection_bias=True, dtype=F64)
    ours.load_fused(theirs.in_proj_weight, theirs.in_proj_bias)
    ours.out_proj.load_state_dict(theirs.out_proj.state_dict())
    x = draw(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x, x, x, need_weights=False)[0])


def test_per_head_weights_are_those_of_gpt_neox() -> None:
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    config = neox.GPTNeoXConfig(
        hidden_size=24, num_attention_heads=3, rotary_pct=0.25, attn_implementation="eager"
    )
    torch.manual_seed(0)
    theirs = neox.GPTNeoXAttention(config, layer_idx=0).eval()
    rotary = Rotary(8, rotary_dim=2)
    ours = MultiHeadAttention(24, 3, projection_bias=True, rotary=rotary)
    ours.load_fused(theirs.query_key_value.weight, theirs.query_key_value.bias, "per_head")
    ours.out_proj.load_state_dict(theirs.dense.state_dict())
    x, at = torch.randn(2, 5, 24), torch.arange(5)
    cos, sin = (torch.cat((turn, turn), -1)[None] for turn in rotary.turns(at))
    hidden = torch.full((5, 5), torch.finfo(torch.float32).min).triu(1)[None, None]
    want = theirs(x, attention_mask=hidden, position_embeddings=(cos, sin))[0]
    torch.testing.assert_close(ours(x, mask=Causal()), want, rtol=1e-5, atol=1e-5)


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 0}, "d_model=0, num_heads=6"),
        ({"num_kv_heads": 4}, r"num_heads=6 is no multiple of num_kv_heads=4.*\[1, 2, 3, 6\]"),
        ({"d_k": None}, "d_model=29 doesn't divide into num_heads=6.*pass d_k= and d_v="),
        ({"d_v": 0}, "d_k=13 and d_v=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"input_dim": 0}, "input_dim=0: must be 1 or more"),
        ({"output_dim": -1}, "output_dim=-1"),
        ({"softcap": 0.0}, "softcap=0.0"),
        ({"scale": float("nan")}, "scale=nan"),
        (
            {"score_bias": ALiBi(torch.nn.Parameter(torch.ones(HEADS)))},
            r"ALiBi over a Parameter.*missing in the layer's parameters\(\).*pass a module",
        ),
        ({"rotary": Rotary(6)}, r"rotary is for d_k=6 but the layer has d_k=13: use Rotary\(13\)"),
    ],
)
def test_errors_of_building(arguments: dict[str, Any], message: str) -> None:
    given = {"d_model": 29, "num_heads": HEADS, "d_k": D_K, "d_v": D_V, **arguments}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m(torch.zeros(2, 3, 4)),
            r"x\.shape=\(2, 3, 4\): expected \[\*batch, length, 3\].*input_dim=4",
        ),
        (lambda m: m(torch.zeros(3)), r"x\.shape=\(3,\)"),
        (lambda m: m(torch.zeros(2, 3, 3)), "reads keys from width memory_dim=5.*pass memory="),
        (lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 3)), r"memory\.shape=\(2, 3, 3\).*memory_dim=3"),
        (lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5)), "value_dim=7: pass values="),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(3, 3, 5), values=torch.zeros(3, 3, 7)),
            r"memory\.shape=\(3, 3, 5\) and x\.shape=\(2, 3, 3\): their batch dimensions must be equal",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5), values=torch.zeros(2, 4, 7)),
            r"values\.shape=\(2, 4, 7\) and memory\.shape=\(2, 3, 5\): all but their width",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 3), torch.zeros(2, 3, 5), values=torch.zeros(2, 3, 5)),
            r"values\.shape=.*value_dim=5",
        ),
        (lambda m: m(torch.zeros(2, 3, 3), values=torch.zeros(2, 3, 7)), "values= given without memory="),
        (
            lambda m: m(torch.zeros(2, 3, 3), memory_positions=torch.arange(3)),
            "memory_positions= given without memory=",
        ),
        (lambda m: m.load_fused(torch.zeros(2, 3)), "differ, so the projections don't make one matrix"),
    ],
)
def test_errors_of_calling(call: Any, message: str) -> None:
    module = MultiHeadAttention(29, HEADS, input_dim=Q_IN, memory_dim=K_IN, value_dim=V_IN, d_k=D_K, d_v=D_V)
    with pytest.raises(ValueError, match=message):
        call(module)


def test_errors_of_types() -> None:
    module = build(input_dim=3)
    with pytest.raises(TypeError, match=r"x is torch.int64 \(2, 5, 3\).*nn.Embedding.*x.float"):
        module(torch.ones(2, 5, 3, dtype=torch.int64))
    other = torch.float32 if module.q_proj.weight.dtype == torch.float64 else torch.float64
    with pytest.raises(TypeError, match=rf"x is {other} and the layer's weights are .*layer.to\({other}\)"):
        module(torch.ones(2, 5, 3, dtype=other))
    memory = torch.ones(2, 7, module.memory_dim, dtype=other)
    with pytest.raises(TypeError, match=rf"memory is {other} and"):
        module(torch.ones(2, 5, 3, dtype=module.q_proj.weight.dtype), memory)
    with torch.autocast("cpu", torch.bfloat16):
        module.float()(torch.ones(2, 5, 3).bfloat16())  # autocast converts


def test_other_errors() -> None:
    module = MultiHeadAttention(12, 2)
    x = torch.zeros(2, 3, 12)
    with pytest.raises(ValueError, match=r"mask=KeyLengths\(lengths\)"):
        module(x, lengths=torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="the cache knows the positions"):
        module(x, cache=GrowingCache(), positions=torch.arange(3))
    with pytest.raises(TypeError, match="cache is a dict"):
        module(x, cache={})
    with pytest.raises(TypeError, match="causal"):
        module(x, causal=True)
    with pytest.raises(TypeError, match="x is a list"):
        module([[1.0]])
    for wrong, message in (
        ("alibi", "score_bias is a str"),
        (torch.zeros(2, 3, 3), r"AddedScores\(tensor\)"),
    ):
        with pytest.raises(TypeError, match=message):
            MultiHeadAttention(12, 2, score_bias=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rotary is a bool.*Rotary\(6\)"):
        MultiHeadAttention(12, 2, rotary=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bias is a str"):
        MultiHeadAttention(12, 2, score_bias=ALiBi.for_heads(2))(x, bias="none")
    turning = MultiHeadAttention(12, 2, rotary=Rotary(6))
    for positions in (torch.arange(4), torch.zeros(3, 3, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"positions.shape=.*must be \[3\]"):
            turning(x, positions=positions)
    with pytest.raises(TypeError, match="positions is list"):
        turning(x, positions=[0, 1, 2])
    with pytest.raises(ValueError, match=r"memory_positions.shape=\[3\]: must be \[5\]"):
        turning(x, torch.zeros(2, 5, 12), memory_positions=torch.arange(3))
    biased, before = MultiHeadAttention(12, 2, projection_bias=True), torch.zeros(36, 12)
    biased.load_fused(before)
    with pytest.raises(ValueError, match="expected 36 rows"):  # and nothing has been written
        biased.load_fused(torch.ones(36, 12), torch.zeros(35))
    assert torch.equal(biased.fused_weight()[0], before)
    biased.q_proj = torch.nn.Sequential(biased.q_proj)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="q_proj is a Sequential"):
        biased.fused_weight()
    with pytest.raises(TypeError, match="heads"):
        MultiHeadAttention(12, 2, heads=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"expected 36 rows.*transposed=True"):
        module.load_fused(torch.zeros(24, 12))
    with pytest.raises(
        ValueError, match=r"\(12, 36\) as \[rows, width\]: expected width 12.*transposed=True"
    ):
        module.load_fused(torch.zeros(12, 36))
    with pytest.raises(ValueError, match="projection_bias=True"):
        module.load_fused(torch.zeros(36, 12), torch.zeros(36))
    with pytest.raises(ValueError, match="layout='rows'"):
        module.load_fused(torch.zeros(36, 12), layout="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layout='rows'"):
        module.fused_weight("rows")  # type: ignore[arg-type]


def test_empty_mask_of_one_query() -> None:
    """One query, one key, hidden: the heads give 0."""
    module = build()
    y = module(draw(1, 1, Q_IN), mask=Allow(torch.tensor([[False]])))
    assert torch.equal(y, torch.zeros(1, 1, OUT, dtype=F64))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"d_model": 12.0}, r"d_model=12\.0 is a float: expected a whole number"),
        ({"num_heads": "3"}, "num_heads='3' is a str"),
        ({"num_heads": True}, "num_heads=True is a bool"),
        ({"num_kv_heads": 1.5}, r"num_kv_heads=1\.5 is a float"),
        ({"d_k": 4.0}, r"d_k=4\.0 is a float"),
        ({"output_dim": 6.0}, r"output_dim=6\.0 is a float"),
        ({"dropout": "x"}, "dropout='x' is a str, and a number is expected: the share that is dropped"),
        ({"scale": "x"}, "scale='x' is a str, and a number is expected"),
        ({"scale": torch.ones(())}, "scale is a tensor.*gradient would be lost"),
        ({"softcap": True}, "softcap=True is a bool"),
        ({"score_bias": ALiBi}, r"score_bias is the class ALiBi.*ALiBi\.for_heads\(num_heads\)"),
        ({"rotary": Rotary}, r"rotary is the class Rotary: .*Rotary\(4\)"),
    ],
)
def test_mistaken_types_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        MultiHeadAttention(**{"d_model": 12, "num_heads": 3} | options)


def test_a_class_as_cache_is_named() -> None:
    with pytest.raises(
        TypeError, match=r"cache is the class GrowingCache.*write GrowingCache\(\.\.\.\) once"
    ):
        MultiHeadAttention(12, 3)(torch.zeros(2, 5, 12), cache=GrowingCache)  # type: ignore[arg-type]
