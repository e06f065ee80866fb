"""The layer in one graph: torch.compile without graph breaks, torch.export with free batch and length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.cache import Cache, GrowingCache, RingCache, StaticCache
from headwise.masks import Causal, KeyLengths, Mask, Window
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, RelativeBias, Rotary

LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped, rotary, norms, gate": {"num_kv_heads": 2, "rotary": Rotary(8), "qk_norm": True, "gate": True},
    "relative, sinks, softcap": {"score_bias": RelativeBias(4), "sinks": True, "softcap": 3.0},
    "ALiBi": {"score_bias": ALiBi.for_heads(4)},
}
MASKS: dict[str, Callable[[], Mask | None]] = {
    "none": lambda: None,
    "causal": lambda: Causal(),
    "window": lambda: Window(3, 0),
    "causal and lengths": lambda: Causal() & KeyLengths(torch.tensor([11, 7])),
}


class Counted:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        self.graphs += 1
        return graph.forward


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# Each takes seconds: a few stand for all, and the rest are for the long run.
ALL = [pytest.param(o, m, marks=pytest.mark.slow) for o in LAYERS for m in MASKS]
FEW = [("plain", "none"), ("grouped, rotary, norms, gate", "causal and lengths"), ("ALiBi", "window")]


@pytest.mark.parametrize(("options", "mask"), [*FEW, *ALL])
def test_one_graph(options: str, mask: str) -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(32, 4, **LAYERS[options]), torch.randn(2, 11, 32)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    want = layer(x, mask=MASKS[mask]())
    y = compiled(x, mask=MASKS[mask]())
    torch.testing.assert_close(y, want, rtol=1e-5, atol=1e-5)
    grads = torch.autograd.grad(y.square().sum(), list(layer.parameters()))
    wanted = torch.autograd.grad(want.square().sum(), list(layer.parameters()))
    torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-4)


class Fixed(nn.Module):
    """A layer with its mask, as a program that is exported has it."""

    def __init__(self, layer: MultiHeadAttention, mask: Mask | None) -> None:
        super().__init__()
        self.layer, self.mask = layer, mask

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        return self.layer(x, memory, mask=self.mask)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("options", "mask"),
    [
        ("grouped, rotary, norms, gate", "causal"),
        ("relative, sinks, softcap", "window"),
        *(p for p in ALL if p.values[1] != "causal and lengths"),  # lengths are of one batch
    ],
)
def test_export_with_free_batch_and_length(options: str, mask: str) -> None:
    torch.manual_seed(0)
    module = Fixed(MultiHeadAttention(32, 4, **LAYERS[options]), MASKS[mask]())
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    shapes = {"x": {0: batch, 1: length}, "memory": None}
    program = torch.export.export(module, (torch.randn(2, 11, 32), None), dynamic_shapes=shapes).module()
    for size in ((2, 11), (3, 17), (5, 2)):
        x = torch.randn(*size, 32)
        torch.testing.assert_close(program(x, None), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    ["grouped, rotary, norms, gate", *(pytest.param(o, marks=pytest.mark.slow) for o in LAYERS)],
)
def test_export_of_cross_attention(options: str) -> None:
    torch.manual_seed(0)
    module = Fixed(MultiHeadAttention(32, 4, **LAYERS[options]), None)
    batch, q_len, k_len = (torch.export.Dim(name) for name in ("batch", "q_len", "k_len"))
    shapes = {"x": {0: batch, 1: q_len}, "memory": {0: batch, 1: k_len}}
    example = torch.randn(2, 11, 32), torch.randn(2, 13, 32)
    program = torch.export.export(module, example, dynamic_shapes=shapes).module()
    for b, q, k in ((2, 11, 13), (3, 17, 5), (2, 7, 7)):
        x, memory = torch.randn(b, q, 32), torch.randn(b, k, 32)
        torch.testing.assert_close(program(x, memory), module(x, memory), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("kind", ["static", "growing", "ring"])
def test_decoding_in_one_graph(kind: str, unequal: bool) -> None:
    """Step after step from one compiled function; with a static cache no shape ever changes, so there are
    two graphs at most: the second has learned that the number of steps is free."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(32, 4, num_kv_heads=2, rotary=Rotary(8))
    x, backend = torch.randn(2, 11, 32), Counted()
    mask = Window(3, 0) if kind == "ring" else Causal()
    makers: dict[str, Callable[[], Cache]] = {
        "static": lambda: StaticCache(2, 2, 13, 8),
        "growing": GrowingCache,
        "ring": lambda: RingCache(3),
    }
    ours, theirs = makers[kind](), makers[kind]()
    step = torch.compile(layer, fullgraph=True, backend=backend)
    with torch.no_grad():
        lengths = torch.tensor([3, 1]) if unequal else None
        first = layer(x[:, :3], mask=mask, cache=ours, lengths=lengths)
        torch.testing.assert_close(first, layer(x[:, :3], mask=mask, cache=theirs, lengths=lengths))
        for i in range(3, 11):
            one = x[:, i : i + 1]
            got = step(one, mask=mask, cache=ours)
            torch.testing.assert_close(got, layer(one, mask=mask, cache=theirs), rtol=1e-5, atol=1e-5)
        if kind == "static":
            assert backend.graphs <= 2
            step(x[:, :1], mask=mask, cache=ours)
            step(x[:, :1], mask=mask, cache=ours)
            with pytest.raises(Exception, match="max_length=13"):
                step(x[:, :1], mask=mask, cache=ours)
            assert ours.lengths.tolist() == ([13, 11] if unequal else [13, 13])
