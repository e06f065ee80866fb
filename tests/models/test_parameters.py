"""Counts of parameters, against the formulas and what can be worked out from the paper's table 3."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import headwise as hw
from headwise.models import TABLE_3, Transformer, TransformerConfig, count_parameters
from headwise.models.parameters import common_vocabularies, count_row, fitting_vocabularies
from headwise.models.table3 import Row, find_row


def by_formula(row: Row, vocab_size: int) -> int:
    """From the sizes alone: three attention blocks, two networks and five norms for each pair of layers."""
    config = row.config(vocab_size)
    d, heads = config.d_model, config.num_heads
    d_k, d_v = config.d_k or d // heads, config.d_v or d // heads
    block = 2 * d * heads * d_k + 2 * d * heads * d_v
    network = 2 * d * config.d_ff + config.d_ff + d
    positions = 2 * config.max_length * d if config.positions == "learned" else 0
    return config.num_layers * (3 * block + 2 * network + 5 * 2 * d) + vocab_size * d + positions


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.name)
def test_every_row_by_its_formula(row: Row) -> None:
    counts = count_row(row, 37)
    assert counts.total == by_formula(row, 37)
    with torch.device("meta"):
        model = Transformer.table3(row.name, 37)
    assert counts.total == sum(p.numel() for p in model.parameters())


def test_parts_of_the_base_model() -> None:
    counts = count_row(find_row("base"), 37_000)
    assert counts["cross-attention"].each == counts["encoder self-attention"].each == 4 * 512**2
    assert counts["feed-forward"].each == 2 * 512 * 2048 + 2048 + 512
    assert [(part.name, part.count) for part in counts.parts] == [
        ("encoder self-attention", 6),
        ("decoder self-attention", 6),
        ("cross-attention", 6),
        ("feed-forward", 12),
        ("norms", 30),
        ("embeddings", 1),
    ]
    assert counts.layers == 44_101_632  # worked out apart from this code
    assert counts.layers + 37_000 * 512 == counts.total
    with pytest.raises(KeyError, match="no part 'rest': there are encoder"):
        counts["rest"]


def test_rows_a_cost_the_same() -> None:
    """ "While keeping the amount of computation constant": h d_k = 512 in each."""
    rows = [count_row(row).layers for row in TABLE_3 if row.name.startswith("A") or row.name == "base"]
    assert len(rows) == 5
    assert len(set(rows)) == 1


def test_vocabularies_that_give_what_the_paper_prints() -> None:
    for row in TABLE_3:
        ends = fitting_vocabularies(row)
        if row.parameters is None:
            assert ends is None
            continue
        assert ends is not None
        for vocab_size in ends:
            assert round(by_formula(row, vocab_size) / 1e6) == row.parameters
        assert by_formula(row, ends[0] - 1) < (row.parameters - 0.5) * 1e6
        assert by_formula(row, ends[1] + 1) >= (row.parameters + 0.5) * 1e6
    low, high = common_vocabularies()
    assert low <= high
    big = fitting_vocabularies(find_row("big"))
    assert big is not None
    assert big[1] < low  # no vocabulary gives all of them


def test_parts_that_are_named_otherwise() -> None:
    model = nn.ModuleDict(
        {
            "attention": hw.MultiHeadAttention(6, 3),
            "norm": nn.LayerNorm(6),
            "where": hw.LearnedPositions(5, 6),
            "out": nn.Linear(6, 2),
        }
    )
    counts = count_parameters(model)
    assert {part.name: part.parameters for part in counts.parts} == {
        "self-attention": 4 * 36,
        "norms": 12,
        "positions": 30,
        "rest": 14,
    }


def test_shared_parameters_count_once() -> None:
    sizes = {"num_layers": 1, "d_model": 12, "d_ff": 17, "num_heads": 3}
    shared = count_parameters(Transformer(TransformerConfig(vocab_size=23, **sizes)))
    apart = count_parameters(Transformer(TransformerConfig(vocab_size=23, share_embeddings=False, **sizes)))
    assert shared["embeddings"].parameters == 23 * 12
    assert apart["embeddings"].parameters == 3 * 23 * 12
    assert apart["embeddings"].each == 23 * 12
