"""Which outputs the results page shows, and what it says of heads."""

import pytest
import torch
from benchmarks.results import heads as of_heads
from benchmarks.results.examples import choose
from benchmarks.results.heads import Head
from torch import nn

import headwise as hw

# Which outputs are shown


def test_graded_outputs_are_shown_by_quartiles():
    scores = [30.0, 10.0, 50.0, 20.0, 40.0, 60.0, 70.0, 80.0, 0.0]
    chosen = choose(scores, [False] * 9, "chrF")
    assert [scores[number] for _, number in chosen.rows] == [80, 60, 40, 20, 0]
    assert "of all 9" in chosen.rule
    assert [number for _, number in choose([1.0] * 5, [False] * 5, "x").rows] == [0, 1, 2, 3, 4]


def test_where_most_are_right_the_wrong_ones_are_shown():
    right = [True, True, False, True, False, True, False, True]
    scores = [1.0, 1.0, 0.5, 1.0, 0.1, 1.0, 0.3, 1.0]
    chosen = choose(scores, right, "share")
    assert chosen.rows == (
        ("right", 0),
        ("right", 7),
        ("wrong, the best", 2),
        ("wrong, the middle", 6),
        ("wrong, the worst", 4),
    )
    assert "5 of 8 are right" in chosen.rule
    assert choose([1.0, 1.0], [True, True], "x").rows == (("right", 0), ("right", 1))
    assert len(choose([1.0, 1.0, 0.0], [True, True, False], "x").rows) == 3


# What heads do


class OneLayer(nn.Module):
    """An attention whose scores are all equal, so its mask decides."""

    def __init__(self, use, mask):
        super().__init__()
        self.mask = mask
        stack = nn.ModuleDict({use: hw.MultiHeadAttention(7, 1, d_k=3, d_v=3)})
        self.encoder = nn.Module() if use == "cross_attention" else stack
        self.decoder = nn.ModuleDict({"layers": nn.ModuleList([stack])}) if "cross" in use else nn.Module()
        nn.init.zeros_(stack[use].q_proj.weight)
        self.use = stack[use]

    def forward(self, x, memory=None):
        return self.use(x, memory, mask=self.mask)


class Stub:
    def __init__(self, model, length, keys=None):
        self.model, self.length, self.keys = model, length, keys

    def run(self, number):
        memory = None if self.keys is None else torch.randn(1, self.keys, 7)
        self.model(torch.randn(1, self.length, 7), memory)


def only(found):
    (head,) = found
    return head


def test_a_head_that_sees_all_alike_spreads_evenly():
    head = only(of_heads.observe(Stub(OneLayer("self_attention", None), 11), range(3)))
    assert head.kind == "encoder self-attention"
    assert head.entropy == pytest.approx(torch.tensor(11.0).log().item(), abs=1e-5)
    assert head.evenness == pytest.approx(1, abs=1e-5)
    assert head.first == head.own == pytest.approx(1 / 11, abs=1e-6)
    places = of_heads.places_of("translation", head.kind)
    assert of_heads.words(head, places) == "spreads evenly"


def test_a_head_that_sees_the_previous_token_looks_at_it():
    mask = hw.Window(1, 0) & ~hw.Window(0, 0)
    head = only(of_heads.observe(Stub(OneLayer("self_attention", mask), 7), [0]))
    assert head.previous == 1  # the first query, which has none, doesn't count
    assert head.distance == pytest.approx(6 / 7)
    places = of_heads.places_of("translation", head.kind)
    assert of_heads.words(head, places) == "looks at the one before"
    assert [what for what, _, _ in of_heads.extremes([head], places)][:2] == ["narrowest", "broadest"]


def test_cross_attention_along_a_diagonal_follows_the_order():
    mask = hw.Allow(torch.eye(5, dtype=torch.bool))
    head = only(of_heads.observe(Stub(OneLayer("cross_attention", mask), 5, keys=5), [0]))
    assert head.kind == "cross-attention"
    assert head.order == pytest.approx(1)
    assert (
        of_heads.words(head, of_heads.places_of("translation", head.kind)) == "follows the order of the input"
    )
    backwards = hw.Allow(torch.eye(5, dtype=torch.bool).flip(0))
    head = only(of_heads.observe(Stub(OneLayer("cross_attention", backwards), 5, keys=5), [0]))
    assert head.order == pytest.approx(-1)


def test_modules_are_told_apart_by_their_names():
    assert of_heads.kind_of("encoder.layers.2.self_attention") == "encoder self-attention"
    assert of_heads.kind_of("speech.decoder.layers.0.self_attention") == "decoder self-attention"
    assert of_heads.kind_of("decoder.layers.0.cross_attention") == "cross-attention"
    assert of_heads.layer_of("speech.decoder.layers.12.self_attention") == 12


def test_rules_for_words_hold_in_their_order():
    figures = dict.fromkeys(Head.__dataclass_fields__, 0.0) | {
        "kind": "cross-attention",
        "layer": 0,
        "head": 0,
    }
    places = {"first": "the first token", "last": "[EOS]"}
    for change, word in (
        ({"last": 0.6, "evenness": 0.9}, "looks at [EOS]"),
        ({"evenness": 0.9, "order": 0.9}, "spreads evenly"),
        ({"order": 0.9, "surest": 0.9}, "follows the order of the input"),
        ({"surest": 0.5}, "picks one, wherever it stands"),
        ({"surest": 0.4}, "a mixture"),
    ):
        assert of_heads.words(Head(**(figures | change)), places) == word
