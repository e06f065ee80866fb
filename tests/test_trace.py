"""The table of steps: shapes of a real run, FLOPs that torch's own counter confirms."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from headwise.cache import CrossCache, GrowingCache
from headwise.masks import Causal, KeyLengths, Window
from headwise.multihead import MultiHeadAttention
from headwise.positions import RelativeBias, Rotary
from headwise.trace import trace


def test_the_example_of_the_paper_at_thirty_texts_of_five_tokens() -> None:
    found = trace(MultiHeadAttention(512, 8, input_dim=1024), torch.randn(30, 5, 1024))
    shapes = {step.name: step.shape for step in found.rows}
    assert shapes == {
        "input": (30, 5, 1024),
        "query projection": (30, 5, 512),
        "key projection": (30, 5, 512),
        "value projection": (30, 5, 512),
        "queries per head": (30, 8, 5, 64),
        "keys per head": (30, 8, 5, 64),
        "values per head": (30, 8, 5, 64),
        "scores": (30, 8, 5, 5),
        "weights": (30, 8, 5, 5),
        "heads' outputs": (30, 8, 5, 64),
        "concatenation": (30, 5, 512),
        "output projection": (30, 5, 512),
    }
    assert found["query projection"].parameters == 1024 * 512
    assert found["query projection"].flops == 2 * 30 * 5 * 1024 * 512
    assert found["scores"].flops == 2 * 30 * 8 * 5 * 5 * 64
    assert found["input"].bytes == 30 * 5 * 1024 * 4
    text = str(found)
    for shape in shapes.values():
        assert str(shape) in text
    assert f"{found.sections[0].total.flops:,}" in text


@pytest.mark.parametrize("kv_heads", [None, 2])
@pytest.mark.parametrize("memory", [False, True])
def test_flops_are_those_that_torch_counts(kv_heads: int | None, memory: bool) -> None:
    module = MultiHeadAttention(
        12, 4, input_dim=5, memory_dim=7 if memory else None, d_k=3, d_v=2, num_kv_heads=kv_heads,
        projection_bias=True, gate=True, kernel="reference",
    )  # fmt: skip
    inputs = [torch.randn(2, 11, 5), *([torch.randn(2, 13, 7)] if memory else [])]
    found = trace(module, *inputs)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*inputs)
    # The reference kernel multiplies once more for values that are not finite; count without these.
    pairs = 2 * 4 * 11 * (13 if memory else 11)
    ours = found.sections[0].total.flops - found["weights"].flops
    theirs = counter.get_total_flops()
    projections = ours - found["scores"].flops - found["heads' outputs"].flops
    linear = sum(counter.flop_counts["Global"].get(op, 0) for op in (torch.ops.aten.addmm, torch.ops.aten.mm))
    assert linear == projections
    assert found["scores"].flops == 2 * pairs * 3
    assert found["heads' outputs"].flops == 2 * pairs * 2
    assert theirs >= ours


def test_parameters_are_all_parameters() -> None:
    module = MultiHeadAttention(
        12, 4, d_k=6, num_kv_heads=2, projection_bias=True, gate=True, qk_norm=True, sinks=True,
        rotary=Rotary(6), score_bias=RelativeBias(4), softcap=5.0,
    )  # fmt: skip
    found = trace(module, torch.randn(2, 5, 12), mask=Causal())
    assert found.sections[0].total.parameters == sum(p.numel() for p in module.parameters())
    assert "tanh" in found["scores"].formula
    assert "turned" in found["keys per head"].formula
    assert found["keys per head"].shape == (2, 2, 5, 6)


def test_masks_say_how_many_pairs_are_visible() -> None:
    module, x = MultiHeadAttention(6, 2), torch.randn(3, 5, 6)
    for mask, seen in (
        (Causal(), 3 * 2 * 15),
        (Window(1, 0), 3 * 2 * 9),
        (KeyLengths(torch.tensor([5, 2, 0])), 2 * 5 * 7),
    ):
        assert f"{seen} of 150 pairs visible" in trace(module, x, mask=mask)["mask"].formula


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = MultiHeadAttention(6, 2)
        self.cross = MultiHeadAttention(6, 3, memory_dim=5)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = x + self.own(x, mask=Causal())
        x = x + self.cross(x, memory=memory)
        return x + self.own(x)  # type: ignore[no-any-return]


def test_a_model_has_a_section_for_each_call() -> None:
    found = trace(Decoder(), torch.randn(2, 3, 6), torch.randn(2, 7, 5))
    assert [section.name for section in found.sections] == ["own", "cross", "own"]
    assert found.sections[1].steps[1].name == "memory"
    assert found.sections[1].steps[1].shape == (2, 7, 5)
    text = str(found)
    assert text.startswith("own\n")
    assert "\ncross\n" in text
    lines = [line for line in text.splitlines() if line.startswith(("step ", "weights ", "total "))]
    assert len({len(line) for line in lines}) == 1  # columns are aligned over all sections


def test_caches_show_what_is_attended_to() -> None:
    module, cache = MultiHeadAttention(6, 2), GrowingCache()
    trace(module, torch.randn(2, 3, 6), cache=cache, mask=Causal())
    found = trace(module, torch.randn(2, 1, 6), cache=cache, mask=Causal())
    assert found["key projection"].shape == (2, 1, 6)
    assert found["keys per head"].shape == (2, 2, 4, 3)
    assert found["weights"].shape == (2, 2, 1, 4)
    kept = CrossCache()
    trace(module, torch.randn(2, 3, 6), torch.randn(2, 7, 6), cache=kept)
    later = trace(module, torch.randn(2, 1, 6), cache=kept)
    with pytest.raises(KeyError, match=r"no step 'key projection'; there are: input, query projection"):
        later["key projection"]


def test_as_json() -> None:
    found = trace(MultiHeadAttention(6, 2), torch.randn(2, 3, 6))
    data = json.loads(json.dumps(found.to_dict()))
    (section,) = data["sections"]
    assert [step["name"] for step in section["steps"]] == [step.name for step in found.rows]
    assert section["steps"][0]["shape"] == [2, 3, 6]
    assert section["total"]["flops"] == found.sections[0].total.flops


def test_leaves_nothing_behind() -> None:
    module, x = MultiHeadAttention(6, 2), torch.randn(2, 3, 6)
    before = module(x)
    trace(module, x)
    with pytest.raises(ValueError, match=r"x\.shape"):
        trace(module, torch.randn(2, 3, 5))
    assert not module.attention_hooks
    assert not module._forward_hooks
    assert not module._forward_pre_hooks
    assert not module.q_proj._forward_hooks
    assert torch.equal(module(x), before)


def test_nothing_to_trace() -> None:
    with pytest.raises(ValueError, match=r"Linear holds no headwise\.MultiHeadAttention"):
        trace(nn.Linear(3, 3), torch.randn(2, 3))

    class Idle(Decoder):
        def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
            return x

    with pytest.raises(ValueError, match="No MultiHeadAttention ran"):
        trace(Idle(), torch.randn(2, 3))
