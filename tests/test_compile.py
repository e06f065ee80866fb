"""`attention` in one graph: torch.compile without graph breaks, torch.export with free sizes, and the
one operation that stands for it there."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from headwise import Entropy, attention, explain
from headwise.attention import problem
from headwise.kernels.packing import pack, unpack
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.masks.base import Not
from headwise.positions import AddedScores, ALiBi, RelativeBuckets

HEADS, KV_HEADS, D_K, D_V = 4, 2, 8, 5
IDS = torch.arange(64) // 5
OUTSIDE = ~Window(1, 0)

# From the lengths of the batch, and leaves of its own, to options.
CALLS: dict[str, Callable[[Tensor, Tensor], dict[str, Any]]] = {
    "none": lambda n, w: {},
    "causal": lambda n, w: {"mask": Causal()},
    "at the start": lambda n, w: {"mask": Causal(), "align": "start"},
    "window": lambda n, w: {"mask": Window(3, 1)},
    "lengths": lambda n, w: {"mask": Causal() & KeyLengths(n)},
    # `~` inside a compiled function is beyond torch.compile; outside of it, or written as Not, it works.
    "prefix": lambda n, w: {"mask": (Causal() | Prefix(n)) & Not(Window(1, 0))},
    "not made here": lambda n, w: {"mask": OUTSIDE},
    "documents": lambda n, w: {"mask": Documents(IDS) & Causal()},
    "alibi": lambda n, w: {"bias": ALiBi(w), "mask": Causal()},
    "sinks and softcap": lambda n, w: {"sinks": w, "softcap": 2.0},
    "scaled": lambda n, w: {"scale": 0.3, "bias": ALiBi(w, symmetric=True) + AddedScores(w.view(-1, 1, 1))},
    "tiled": lambda n, w: {"kernel": "tiled", "strict": True, "mask": Causal()},
    "reference": lambda n, w: {"kernel": "reference", "mask": Causal()},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def drawn(batch: int, q_len: int, k_len: int) -> tuple[Tensor, ...]:
    """q, k, v, lengths and a leaf of one number per head."""
    torch.manual_seed(0)
    shapes = ((batch, HEADS, q_len, D_K), (batch, KV_HEADS, k_len, D_K), (batch, KV_HEADS, k_len, D_V))
    q, k, v = (torch.randn(shape, requires_grad=True) for shape in shapes)
    return q, k, v, torch.arange(1, batch + 1), torch.randn(HEADS, requires_grad=True)


def every_call(q: Tensor, k: Tensor, v: Tensor, n: Tensor, w: Tensor) -> list[Tensor]:
    return [attention(q, k, v, **options(n, w)) for options in CALLS.values()]


def grads(outs: list[Tensor], leaves: list[Tensor]) -> tuple[Tensor, ...]:
    total = sum(out.square().sum() * (i + 1) for i, out in enumerate(outs))
    return torch.autograd.grad(total, leaves)


def test_every_call_in_one_graph_with_free_sizes() -> None:
    """Forward and backward; the graph is made once for all batch sizes and lengths."""
    graphs, graphs_of_first = 0, 0

    def count(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        nonlocal graphs
        graphs += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    compiled = torch.compile(every_call, fullgraph=True, dynamic=True, backend=count)
    # No two sizes are equal: PyTorch takes equal ones of the first call for one size.
    for sizes in ((3, 7, 11), (6, 19, 23), (9, 31, 33)):
        q, k, v, n, w = drawn(*sizes)
        want, got = every_call(q, k, v, n, w), compiled(q, k, v, n, w)
        for name, mine, theirs in zip(CALLS, got, want, strict=True):
            torch.testing.assert_close(mine, theirs, msg=lambda m, n=name: f"{n}: {m}")
        leaves = [q, k, v, w]
        for mine, theirs in zip(grads(got, leaves), grads(want, leaves), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
        graphs_of_first = graphs_of_first or graphs
    assert graphs == graphs_of_first > 0


def test_dropout_in_a_graph_draws_as_outside() -> None:
    """The seed is drawn in the graph; the same state of the generator drops the same weights."""

    def dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, dropout=0.5, mask=Causal())

    q, k, v, *_ = drawn(2, 7, 11)
    compiled = torch.compile(dropped, fullgraph=True, backend="aot_eager")
    torch.manual_seed(3)
    first, second = compiled(q, k, v), compiled(q, k, v)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    torch.testing.assert_close(dropped(q, k, v), first)
    # Forward and backward agree: out is linear in v, so v . dv = out . d out.
    d_out = torch.randn_like(second)
    (d_v,) = torch.autograd.grad(second, v, d_out)
    torch.testing.assert_close((d_v * v).sum(), (second * d_out).sum())


def test_positions_and_biases_of_the_call_in_one_graph() -> None:
    def call(
        q: Tensor, k: Tensor, v: Tensor, at: Tensor, table: Tensor, bias: Tensor, allow: Tensor
    ) -> list[Tensor]:
        return [
            attention(q, k, v, q_positions=at, mask=Causal() & Window(4, 0)),
            attention(q, k, v, bias=RelativeBuckets(table, False, 16), mask=Causal()),
            attention(q, k, v, bias=bias, mask=Allow(allow) & ValidKeys()),
        ]

    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    for sizes in ((3, 7, 11), (6, 13, 17)):
        q, k, v, *_ = drawn(*sizes)
        at = torch.randint(0, sizes[2], (sizes[0], sizes[1]))
        table = torch.randn(8, HEADS, requires_grad=True)
        bias = torch.randn(1, HEADS, 1, sizes[2], requires_grad=True)
        allow = torch.rand(sizes[0], 1, sizes[1], sizes[2]) < 0.7
        want, got = (f(q, k, v, at, table, bias, allow) for f in (call, compiled))
        for mine, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(mine, theirs)
        leaves = [q, k, v, table, bias]
        for mine, theirs in zip(grads(got, leaves), grads(want, leaves), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_observations_in_one_graph(device: str | None) -> None:
    """A default device, too, which makes Dynamo follow torch's functions in another way."""

    def seen(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        out, observed = attention(q, k, v, observe=[Entropy()])
        return out, observed.entropy

    q, k, v, *_ = drawn(2, 7, 11)
    torch._dynamo.reset()
    compiled = torch.compile(seen, fullgraph=True, backend="aot_eager")
    with nullcontext() if device is None else torch.device(device):
        found = compiled(q, k, v)
    for mine, theirs in zip(found, seen(q, k, v), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_mistakes_are_found_while_tracing() -> None:
    q, k, v, *_ = drawn(2, 7, 11)
    compiled = torch.compile(
        lambda q, k, v: attention(q, k[:, :, 1:], v), fullgraph=True, backend="aot_eager"
    )
    with pytest.raises(Exception, match="k_len differs"):
        compiled(q, k, v)


@pytest.mark.slow
def test_inductor() -> None:
    compiled = torch.compile(every_call, fullgraph=True, dynamic=True)
    for sizes in ((2, 7, 11), (3, 19, 23)):
        q, k, v, n, w = drawn(*sizes)
        want, got = every_call(q, k, v, n, w), compiled(q, k, v, n, w)
        for mine, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(mine, theirs)
        leaves = [q, k, v, w]
        for mine, theirs in zip(grads(got, leaves), grads(want, leaves), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


class EveryCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, HEADS))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> list[Tensor]:
        return every_call(q, k, v, n, self.weight)


def exported() -> tuple[EveryCall, torch.export.ExportedProgram]:
    module = EveryCall()
    q, k, v, n, _ = (t.detach() for t in drawn(3, 13, 17))
    batch, q_len, k_len = (
        Dim("batch", min=2, max=64),
        Dim("q_len", min=2, max=60),
        Dim("k_len", min=2, max=60),
    )
    shapes = ({0: batch, 2: q_len}, {0: batch, 2: k_len}, {0: batch, 2: k_len}, {0: batch})
    return module, export(module, (q, k, v, n), dynamic_shapes=shapes)


def test_export_with_free_sizes_saved_and_loaded() -> None:
    """One program for every batch size and length; it survives being written to a file, and its graph
    holds one operation per call."""
    module, program = exported()
    calls = [node for node in program.graph.nodes if node.target is torch.ops.headwise.attention.default]
    assert len(calls) == len(CALLS)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for sizes in ((2, 2, 2), (3, 19, 23), (5, 31, 7)):
        q, k, v, n, _ = (t.detach() for t in drawn(*sizes))
        n = n.clamp(max=sizes[2])
        want = module(q, k, v, n)
        for run in (program.module(), loaded):
            for name, mine, theirs in zip(CALLS, run(q, k, v, n), want, strict=True):
                torch.testing.assert_close(mine, theirs, msg=lambda m, n=name: f"{n}: {m}")


# The operation itself


def arguments(**options: Any) -> tuple[Any, ...]:
    """Arguments of `headwise::attention` for a call."""
    q, k, v, *_ = (t.detach().clone() for t in drawn(2, 7, 11))
    given = problem(q, k, v, **options)
    masks: list[Tensor] = []
    biases: list[Tensor] = []
    mask, bias = pack(given.mask, masks), pack(given.bias, biases)
    frame = given.frame
    tensors = [t.detach().clone().requires_grad_() for t in (given.q, given.k, given.v)]
    return (
        *tensors,
        given.sinks,
        given.seed,
        None if frame.q_start is not None else frame.q_pos,
        None if frame.k_start is not None else frame.k_pos,
        frame.q_start or 0,
        frame.k_start or 0,
        mask,
        masks,
        bias,
        biases,
        given.scale,
        given.softcap,
        given.dropout,
        "auto",
        False,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": Causal() & KeyLengths(torch.tensor([3, 11]))},
        {"bias": torch.randn(HEADS, 1, 11, requires_grad=True), "sinks": torch.randn(HEADS), "softcap": 2.0},
        {"dropout": 0.3, "q_positions": torch.arange(7)},
        {"kernel": "reference"},
    ],
)
def test_the_operation_keeps_the_rules_of_pytorch(options: dict[str, Any]) -> None:
    """Schema (nothing is changed in place, nothing returned is an alias of an input), shape rule, gradient,
    and all of it with dynamic sizes under AOT autograd."""
    options = dict(options)
    kernel = options.pop("kernel", "auto")
    args = list(arguments(**options))
    args[-2] = kernel
    torch.library.opcheck(torch.ops.headwise.attention.default, tuple(args))


MASKS: list[Mask] = [
    Causal(),
    Window(3, None),
    KeyLengths(torch.tensor([3, 7])),
    KeyLengths(4),
    Prefix(2),
    Documents(torch.arange(11) // 3),
    Documents(torch.arange(11) // 3, query_ids=torch.arange(7) // 2),
    Allow(torch.rand(7, 11) < 0.5),
    ValidKeys(),
    (Causal() | Prefix(torch.tensor([1, 2]))) & ~Window(1, 1),
]


@pytest.mark.parametrize("mask", MASKS, ids=[m.describe() for m in MASKS])
def test_masks_survive_being_packed(mask: Mask) -> None:
    q, k, v, *_ = drawn(2, 7, 11)
    frame = problem(q, k, v).frame
    tensors: list[Tensor] = []
    again = unpack(pack(mask, tensors), tensors)
    assert type(again) is type(mask)
    assert torch.equal(again.dense(frame), mask.dense(frame))
    assert again.describe() == mask.describe()


@pytest.mark.parametrize(
    "bias",
    [
        ALiBi.for_heads(HEADS, symmetric=True),
        RelativeBuckets(torch.randn(8, HEADS), False, 16),
        AddedScores(torch.randn(7, 11)),
        ALiBi.for_heads(HEADS) + AddedScores(torch.randn(1, 11)),
    ],
)
def test_biases_survive_being_packed(bias: Any) -> None:
    q, k, v, *_ = drawn(2, 7, 11)
    frame = problem(q, k, v).frame
    tensors: list[Tensor] = []
    again = unpack(pack(bias, tensors), tensors)
    everything = slice(0, 7), slice(0, 11)
    assert torch.equal(again.block(frame, *everything), bias.block(frame, *everything))


def test_explain_is_for_outside() -> None:
    """Outside of a graph nothing of this is used."""
    q, k, v, *_ = drawn(2, 7, 11)
    assert explain(q, k, v).kernel.name in ("native", "tiled")  # d_v is not d_k


def test_a_mask_is_negated_inside_a_compiled_function() -> None:
    def call(x: Tensor) -> Tensor:
        return attention(x, x, x, mask=Not(Window(2, 1)) & Causal())

    x = torch.randn(2, 3, 11, 5)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), attention(x, x, x, mask=~Window(2, 1) & Causal()))
